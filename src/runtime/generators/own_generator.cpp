#include "runtime/generators/own_generator.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <torch/library.h>
#include <torch/version.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <mutex>
#include <optional>
#include <string_view>

#include "core/text/text.hpp"
#include "runtime/generator_state.hpp"

namespace hortator::runtime {
namespace {

// LibTorch gives this key a fallback that does nothing, and no operator a kernel for it. Only Python's export uses it.
constexpr auto drawing_key = c10::DispatchKey::PreDispatch;

thread_local OwnGenerator* current = nullptr;

bool is_generator(const c10::Argument& argument) {
  const auto optional = argument.type()->cast<c10::OptionalType>();
  return optional && optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
}

// An operator without tensors calls others that fill its result.
bool is_on_cpu(c10::ArrayRef<c10::IValue> arguments) {
  bool has_tensor = false;
  for (const auto& argument : arguments) {
    if (!argument.isTensor() || !argument.toTensor().defined()) continue;
    if (!argument.toTensor().is_cpu()) return false;
    has_tensor = true;
  }
  return has_tensor;
}

void give_generator(const c10::FunctionSchema& schema, torch::jit::Stack& stack) {
  const auto& arguments = schema.arguments();
  const auto place = static_cast<std::size_t>(std::ranges::find_if(arguments, is_generator) - arguments.begin());
  auto& generator = torch::jit::peek(stack, place, arguments.size());
  if (generator.isNone() && is_on_cpu(torch::jit::last(stack, arguments.size()))) generator = current->seeded();
}

void draw(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (current != nullptr) give_generator(op.schema(), *stack);
  op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, drawing_key), stack);
}

bool draws(const c10::OperatorName& name) {
  if (!std::string_view(name.name).starts_with("aten::")) return false;
  const auto op = c10::Dispatcher::singleton().findSchema(name);
  return op && std::ranges::any_of(op->schema().arguments(), is_generator);
}

void intercept_all() {
  // Never destroyed: operators may run while static objects are destroyed.
  static auto* library = new torch::Library(torch::Library::IMPL, "aten", drawing_key, __FILE__, __LINE__);
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (draws(name)) library->impl(c10::toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&draw>());
  }
}

bool works() {
  constexpr std::uint64_t seed = 7;
  const auto before = generator_state(default_generator(c10::kCPU));
  OwnGenerator own(seed);
  const auto drawn = [&] {
    const DrawFrom scope(own);
    return at::rand({2});
  }();
  return at::equal(drawn, at::rand({2}, at::make_generator<at::CPUGeneratorImpl>(seed))) &&
         at::equal(before, generator_state(default_generator(c10::kCPU)));
}

[[noreturn]] void throw_unsupported(std::string_view reason) {
  throw Error(
      {.what = text::concat("The random numbers that a data set draws cannot be kept apart from the model's: ", reason),
       .why = "batches that are read ahead would change the numbers of the training loop",
       .hint = text::concat("this LibTorch is ", TORCH_VERSION, ": use LibTorch 2.9 to 2.15")});
}

}  // namespace

const at::Generator& OwnGenerator::seeded() {
  if (is_seeded_) return generator_;
  if (generator_.defined()) {
    const std::scoped_lock lock(generator_.mutex());
    generator_.set_current_seed(seed_);
  } else {
    generator_ = at::make_generator<at::CPUGeneratorImpl>(seed_);
  }
  is_seeded_ = true;
  return generator_;
}

DrawFrom::DrawFrom(OwnGenerator& generator) : outer_(current), intercepts_(drawing_key) { current = &generator; }

DrawFrom::~DrawFrom() { current = outer_; }

void intercept_random_operators() {
  static std::once_flag once;
  std::call_once(once, [] {
    try {
      intercept_all();
    } catch (const c10::Error& error) {
      throw_unsupported(error.what_without_backtrace());
    }
    if (!works()) throw_unsupported("operators do not reach the dispatch key PreDispatch");
  });
}

}  // namespace hortator::runtime

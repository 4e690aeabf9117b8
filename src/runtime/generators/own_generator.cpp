#include "runtime/generators/own_generator.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <torch/version.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/text.hpp"
#include "interception/dispatch_keys.hpp"
#include "interception/registration.hpp"
#include "runtime/generator_state.hpp"

namespace hortator::runtime {
namespace {

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
  interception::pass_on(interception::drawing_key, op, keys, stack);
}

bool draws(const c10::OperatorName& name) {
  if (!std::string_view(name.name).starts_with("aten::")) return false;
  const auto op = c10::Dispatcher::singleton().findSchema(name);
  return op && std::ranges::any_of(op->schema().arguments(), is_generator);
}

void intercept_drawing() {
  std::vector<std::string> operators;
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (draws(name)) operators.push_back(c10::toString(name));
  }
  interception::intercept_operators(interception::drawing_key, interception::as_kernel<&draw>(), operators);
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

DrawFrom::DrawFrom(OwnGenerator& generator) : outer_(current), intercepts_(interception::drawing_key) {
  current = &generator;
}

DrawFrom::~DrawFrom() { current = outer_; }

void intercept_random_operators() {
  static std::once_flag once;
  std::call_once(once, [] {
    try {
      intercept_drawing();
    } catch (const c10::Error& error) {
      throw_unsupported(error.what_without_backtrace());
    }
    if (!works()) throw_unsupported("operators do not reach the dispatch key PreDispatch");
  });
}

}  // namespace hortator::runtime

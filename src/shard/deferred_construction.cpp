#include <ATen/core/ivalue.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <hortator/deferred_construction.hpp>
#include <hortator/error.hpp>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "shard/interception.hpp"
#include "shard/operator_use.hpp"
#include "shard/paged_key.hpp"
#include "shard/recording.hpp"
#include "shard/recycling_allocator.hpp"

namespace hortator {
namespace shard {
namespace {

thread_local Recording* current = nullptr;

constexpr c10::DispatchKeySet after_us(c10::DispatchKeySet::FULL_AFTER, recording_key);

bool makes_empty_tensor(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name();
  return (name.name == "aten::empty" && name.overload_name == "memory_format") || name.name == "aten::empty_strided";
}

bool is_random(const c10::OperatorHandle& op) { return op.hasTag(at::Tag::nondeterministic_seeded); }

bool takes_tensors(c10::ArrayRef<c10::IValue> arguments) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const c10::IValue& argument) { return argument.isTensor() && argument.toTensor().defined(); });
}

void make_without_memory(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  {
    const c10::impl::ExcludeDispatchKeyGuard inner(recording_key);
    op.redispatchBoxed(keys & after_us, stack);
  }
  const auto& made = stack->back().toTensor();
  if (made.device().is_cpu() && made.layout() == at::kStrided && made.numel() > 0) current->add(made);
}

// Operators that make tensors of nothing (ones, randn) consist of others, which come by themselves. What reads one of
// our tensors finds it through its key (interception.hpp), and gives it its values.
void run_recorded(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (current == nullptr) return op.redispatchBoxed(keys & after_us, stack);
  if (makes_empty_tensor(op)) return make_without_memory(op, keys, stack);
  const auto count = op.schema().arguments().size();
  const auto arguments = torch::jit::last(*stack, count);
  if (auto noted = current->record(op, arguments); noted.defined()) {
    torch::jit::drop(*stack, count);
    stack->emplace_back(std::move(noted));
    return;
  }
  if (!takes_tensors(arguments) || use_of(op).leaves_bytes_alone) return op.redispatchBoxed(keys & after_us, stack);
  // It computes: the tensors that it makes on its way have values.
  if (is_random(op)) current->catch_up();
  const c10::impl::ExcludeDispatchKeyGuard inner(recording_key);
  op.redispatchBoxed(keys & after_us, stack);
}

torch::Library install() {
  torch::Library library(torch::Library::IMPL, "_", std::make_optional(recording_key), __FILE__, __LINE__);
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_recorded>());
  return library;
}

}  // namespace
}  // namespace shard

class DeferredConstruction::Scope {
 public:
  Scope() : former_(std::exchange(shard::current, recording_.get())) {}
  ~Scope() { shard::current = former_; }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  std::shared_ptr<shard::Recording> recording_ = std::make_shared<shard::Recording>();  // then its tensors own it
  shard::Recording* former_;
  shard::RecyclingAllocator blocks_{0};  // what comes and goes at once leaves no holes
  c10::impl::IncludeDispatchKeyGuard on_{shard::recording_key};
};

DeferredConstruction::DeferredConstruction() {
  shard::start_interception();
  [[maybe_unused]] static const auto* library = new torch::Library(shard::install());
  scope_ = std::make_unique<Scope>();
}

DeferredConstruction::~DeferredConstruction() = default;

}  // namespace hortator

#include "paging/deferred/construction_scope.hpp"

#include <ATen/core/ivalue.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "paging/interception/interception.hpp"
#include "paging/interception/operator_use.hpp"

namespace hortator::paging {
namespace {

thread_local Recording* current = nullptr;

constexpr c10::DispatchKeySet after_recording(c10::DispatchKeySet::FULL_AFTER, recording_key);

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
    op.redispatchBoxed(keys & after_recording, stack);
  }
  const auto& made = stack->back().toTensor();
  if (made.device().is_cpu() && made.layout() == at::kStrided && made.numel() > 0) current->add(made);
}

// Operators that make tensors from no tensor (ones, randn) consist of others, which are recorded themselves. An
// operator that reads a recorded tensor is intercepted by its key (interception.hpp), which gives the tensor its
// values.
void run_recorded(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (current == nullptr) return op.redispatchBoxed(keys & after_recording, stack);
  if (makes_empty_tensor(op)) return make_without_memory(op, keys, stack);
  const auto count = op.schema().arguments().size();
  const auto arguments = torch::jit::last(*stack, count);
  if (auto noted = current->record(op, arguments); noted.defined()) {
    torch::jit::drop(*stack, count);
    stack->emplace_back(std::move(noted));
    return;
  }
  if (!takes_tensors(arguments) || use_of(op).leaves_bytes_alone)
    return op.redispatchBoxed(keys & after_recording, stack);
  // It computes: the temporary tensors that it makes must have values.
  if (is_random(op)) current->catch_up();
  const c10::impl::ExcludeDispatchKeyGuard inner(recording_key);
  op.redispatchBoxed(keys & after_recording, stack);
}

torch::Library install_recording() {
  torch::Library library(torch::Library::IMPL, "_", std::make_optional(recording_key), __FILE__, __LINE__);
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_recorded>());
  return library;
}

Recording* begin(Recording& recording) {
  start_interception();
  [[maybe_unused]] static const auto* library = new torch::Library(install_recording());
  return std::exchange(current, &recording);
}

}  // namespace

ConstructionScope::ConstructionScope(Recording::Order order)
    : recording_(std::make_shared<Recording>(order)), former_(begin(*recording_)), on_(recording_key) {}

ConstructionScope::~ConstructionScope() {
  current = former_;
  recording_->end();
}

}  // namespace hortator::paging

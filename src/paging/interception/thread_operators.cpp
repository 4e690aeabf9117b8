#include "paging/interception/thread_operators.hpp"

#include <torch/library.h>

#include <optional>
#include <utility>

namespace hortator::paging {
namespace {

constexpr c10::DispatchKeySet after_handlers(c10::DispatchKeySet::FULL_AFTER, recording_key);

thread_local OperatorHandler handling = nullptr;

void run_handled(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (handling == nullptr) return ThreadOperators::open(op, keys, stack);
  handling(op, keys, stack);
}

torch::Library install_handling() {
  torch::Library library(torch::Library::IMPL, "_", std::make_optional(recording_key), __FILE__, __LINE__);
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_handled>());
  return library;
}

// A key can have one fallback in a process. Never destroyed: operators may run while static objects are destroyed.
OperatorHandler start_handling(OperatorHandler handler) {
  [[maybe_unused]] static const auto* library = new torch::Library(install_handling());
  return std::exchange(handling, handler);
}

}  // namespace

ThreadOperators::ThreadOperators(OperatorHandler handler) : former_(start_handling(handler)), on_(recording_key) {}

ThreadOperators::~ThreadOperators() { handling = former_; }

void ThreadOperators::run_as_always(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const Inside inside;
  op.redispatchBoxed(keys & after_handlers, stack);
}

void ThreadOperators::open(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  op.redispatchBoxed(keys & after_handlers, stack);
}

}  // namespace hortator::paging

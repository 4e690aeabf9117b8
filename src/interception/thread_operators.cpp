#include "interception/thread_operators.hpp"

#include <utility>

namespace hortator::interception {
namespace {

thread_local OperatorHandler handling = nullptr;

void run_handled(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (handling == nullptr) return ThreadOperators::open(op, keys, stack);
  handling(op, keys, stack);
}

OperatorHandler start_handling(OperatorHandler handler) {
  [[maybe_unused]] static const bool starts =
      (intercept_all(recording_key, as_kernel<&run_handled>(), "The operators of a thread cannot be seen"), true);
  return std::exchange(handling, handler);
}

}  // namespace

ThreadOperators::ThreadOperators(OperatorHandler handler) : former_(start_handling(handler)), on_(recording_key) {}

ThreadOperators::~ThreadOperators() { handling = former_; }

void ThreadOperators::run_as_always(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const Inside inside;
  pass_on(recording_key, op, keys, stack);
}

void ThreadOperators::open(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  pass_on(recording_key, op, keys, stack);
}

}  // namespace hortator::interception

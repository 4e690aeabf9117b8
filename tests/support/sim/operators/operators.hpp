#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace hortator::sim {

/// Submits an operator to the current stream of its tensors' device. Returns tensors that the device fills later; waits
/// only where what the operator returns depends on data.
void run_operator(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace hortator::sim

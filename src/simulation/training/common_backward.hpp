#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/accelerator.hpp>
#include <vector>

namespace hortator::simulation {

/// Runs a backward pass that reaches one model, whose parameters that learn are `parameters`. If it fails on one rank,
/// that rank sends zeros in place of the gradients that it does not have, so that no rank waits for it, and then all
/// ranks throw its error. Not at ZeRO stage 3, where a backward pass communicates. @collective
void common_backward(Accelerator& accelerator, const at::Tensor& loss, const std::vector<at::Tensor>& parameters);

}  // namespace hortator::simulation

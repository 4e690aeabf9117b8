#pragma once

#include <torch/optim/optimizer.h>

#include <cstddef>
#include <optional>

#include "step/optimizer/fused_step.hpp"

namespace hortator::step {

/// Whether a kernel call with `bytes` of parameters may take `parameter` too. On a device it always may, since a call
/// costs more than its work. On the CPU, and where the parameter or its moment (`memory`) is paged, a call takes a few
/// MiB, because all of its tensors must be in memory at once.
bool has_room_beside(std::size_t bytes, const at::Tensor& parameter, const at::Tensor& memory);

/// Whether the kernels can step all parameters of `group`. They see addresses and element counts only, so a parameter
/// and its gradient must have the same strides and no gaps. They step all parameters at once, so none may be listed
/// twice.
bool fits_fused_kernel(const torch::optim::OptimizerParamGroup& group);

/// The gradient of a parameter that fits, with the parameter's exact strides. Strides of dimensions of size one have no
/// meaning, but some kernels compare them.
at::Tensor gradient_of(const at::Tensor& parameter);

/// Throws: a parameter's state cannot be created while a step is recorded.
[[noreturn]] void throw_first_gradient();

/// The overflow flag that kernels on `device` read first; nothing unless this step may be skipped.
std::optional<at::Tensor> not_finite_for(const StepMode& mode, c10::Device device);

/// Gives `moment` the strides of `parameter`. A moment from a checkpoint may have others.
void lay_out_as(at::Tensor& moment, const at::Tensor& parameter);

}  // namespace hortator::step

#pragma once

#include <torch/optim/optimizer.h>

#include <cstddef>
#include <optional>

#include "step/optimizer/fused_step.hpp"

namespace hortator::step {

/// Does a call of a kernel that takes `bytes` of parameters already take this one, too? On a device all, since calls
/// cost more than their work there. On the CPU, and where parameters or what is remembered of them are paged, a few
/// MiB: all of a call's must be in memory at once.
bool has_room_beside(std::size_t bytes, const at::Tensor& parameter, const at::Tensor& memory);

/// Can the kernels walk over each parameter and its gradient, where it has one, element by element? They look at
/// addresses and element counts alone, so the two must lie in memory alike, without gaps; and they take all parameters
/// at once, so none may come twice.
bool fits_fused_kernel(const torch::optim::OptimizerParamGroup& group);

/// The gradient of a parameter that fits, with its very strides (those of dimensions of size one mean nothing, but are
/// compared by some kernels).
at::Tensor gradient_of(const at::Tensor& parameter);

/// Throws: what is remembered of a parameter cannot be made while a step is recorded.
[[noreturn]] void throw_first_gradient();

/// What kernels on `device` look at before they do anything, if this step may prove to be skipped.
std::optional<at::Tensor> not_finite_for(const StepManner& manner, c10::Device device);

/// A moment that lies in memory as its parameter does. A restored one may not.
void lay_out_as(at::Tensor& moment, const at::Tensor& parameter);

}  // namespace hortator::step

#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "step/gradients/gradient_groups.hpp"

/// Clips gradients with a few kernels for each device and type. Nothing here waits for a device.
namespace hortator::step {

/// The norm of all gradients as one vector, on the first group's device. Computed in fp64 if some gradients are fp64,
/// else in fp32. `norm_type` is that of linalg_vector_norm: 2, 1, infinity, ... Zero without gradients.
at::Tensor total_norm(const std::vector<GradientGroup>& groups, double norm_type);

/// Scales gradients whose norm is `total` down to `max_norm`. Never enlarges them.
void scale_to_norm(const std::vector<GradientGroup>& groups, const at::Tensor& total, double max_norm);

/// Clamps each number to [-limit, limit].
void clamp(const std::vector<GradientGroup>& groups, double limit);

/// Throws if `limit` is negative or NaN. `what` is the argument's name.
void check_limit(double limit, const char* what);

}  // namespace hortator::step

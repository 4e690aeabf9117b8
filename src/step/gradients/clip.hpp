#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "step/gradients/gradient_groups.hpp"

/// Clipping of gradients in a few kernels a device and type. Nothing here waits for a device.
namespace hortator::step {

/// The norm of all gradients as if they were one vector, in fp32, or fp64 where there are such; on the device of the
/// first. `norm_type` as of linalg_vector_norm: 2, 1, infinity, ... Zero without gradients.
at::Tensor total_norm(const std::vector<GradientGroup>& groups, double norm_type);

/// Makes gradients of norm `total` no longer than `max_norm`. They never grow.
void scale_to_norm(const std::vector<GradientGroup>& groups, const at::Tensor& total, double max_norm);

/// Each number into [-limit, limit].
void clamp(const std::vector<GradientGroup>& groups, double limit);

/// Throws unless gradients can be clipped to this. `what` is the argument's name.
void check_limit(double limit, const char* what);

}  // namespace hortator::step

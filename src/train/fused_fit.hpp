#pragma once

#include <torch/optim/optimizer.h>

#include <cstddef>

namespace hortator::train {

/// How many bytes of parameters one call of a kernel takes, about: where they or their moments are paged, all of a
/// call's must be in memory at once.
constexpr std::size_t most_bytes_a_call = std::size_t{4} << 20;

/// Can the kernels walk over each parameter and its gradient, where it has one, element by element? They look at
/// addresses and element counts alone, so the two must lie in memory alike, without gaps; and they take all parameters
/// at once, so none may come twice.
bool fits_fused_kernel(const torch::optim::OptimizerParamGroup& group);

/// The gradient of a parameter that fits, with its very strides (those of dimensions of size one mean nothing, but are
/// compared by some kernels).
at::Tensor gradient_of(const at::Tensor& parameter);

/// A moment that lies in memory as its parameter does. A restored one may not.
void lay_out_as(at::Tensor& moment, const at::Tensor& parameter);

}  // namespace hortator::train

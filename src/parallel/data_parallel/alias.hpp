#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace hortator::parallel {

/// Returns a tensor of `like`'s sizes, strides and device, of type `type`, in the memory of `memory`, which may be of
/// another type; `offset` counts elements of `type`. It is not a view: Optimizer::zero_grad() detaches gradients in
/// place, which LibTorch refuses for views.
at::Tensor alias(const at::Tensor& memory, std::int64_t offset, const at::Tensor& like, at::ScalarType type);

}  // namespace hortator::parallel

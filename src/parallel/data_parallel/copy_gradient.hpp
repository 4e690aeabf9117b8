#pragma once

#include <ATen/core/Tensor.h>

namespace hortator::parallel {

/// target.copy_(gradient), for a target that other ranks read next: large gradients bypass this processor's cache.
void copy_gradient(const at::Tensor& target, const at::Tensor& gradient);

}  // namespace hortator::parallel

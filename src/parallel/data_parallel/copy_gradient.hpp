#pragma once

#include <ATen/core/Tensor.h>

namespace hortator::parallel {

/// place.copy_(gradient), where the other ranks are who reads it next: large ones go past this processor's cache.
void copy_gradient(const at::Tensor& place, const at::Tensor& gradient);

}  // namespace hortator::parallel

#pragma once

#include <ATen/core/Tensor.h>

namespace hortator::vision {

/// Throws UsageError unless it is float32 [1 or 3, height, width].
void require_image(const at::Tensor& image);

}  // namespace hortator::vision

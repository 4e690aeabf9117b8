#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <cstdint>

namespace hortator::parallel {

/// Whether operators on the tensor are recorded now.
inline bool has_gradient(const at::Tensor& tensor) { return c10::GradMode::is_enabled() && tensor.requires_grad(); }

/// Grows with each change in place; 0 for tensors of inference mode, which do not count them.
inline std::uint32_t tensor_version(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : tensor.unsafeGetTensorImpl()->version_counter().current_version();
}

}  // namespace hortator::parallel

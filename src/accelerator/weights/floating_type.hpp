#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

/// The type that a user chooses for the floating-point tensors of a model.
namespace hortator::accelerator {

/// Throws UsageError if another type is chosen.
void require_floating(const std::optional<at::ScalarType>& chosen);

/// The type that `tensor` gets: its own if none is chosen, or if it is not a floating-point tensor.
inline at::ScalarType type_with(const std::optional<at::ScalarType>& chosen, const at::Tensor& tensor) {
  return chosen && tensor.is_floating_point() ? *chosen : tensor.scalar_type();
}

}  // namespace hortator::accelerator

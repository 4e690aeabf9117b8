#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "core/range.hpp"

/// Ranges of a tensor's elements, counted in row-major order whatever its strides.
namespace hortator::formats {

/// Whether the tensor's bytes can be stored as they are: in host memory, contiguous, neither conjugated nor negated.
/// False for tensors whose operators are intercepted (paged parameters), since their memory may be released.
bool lies_flat(const at::Tensor& tensor);
/// Returns the tensor if it lies flat, else a copy that does.
at::Tensor ready_to_store(const at::Tensor& tensor);

/// Calls `work` with views that cover `elements` of `tensor` in row-major order, of at most `max_elements` each.
void for_each_piece(const at::Tensor& tensor, core::Range elements, std::int64_t max_elements,
                    const std::function<void(const at::Tensor&)>& work);

/// Copies `flat` into the elements of `tensor` from `begin`, converted to its type and device.
void scatter(const at::Tensor& flat, const at::Tensor& tensor, std::int64_t begin);

}  // namespace hortator::formats

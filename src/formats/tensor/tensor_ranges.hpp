#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/range.hpp"

namespace hortator::formats {

/// A box of a tensor (a hyperslab of HDF5): from `begin[d]` to `begin[d] + count[d]` in each dimension d.
struct TensorBlock {
  std::vector<std::int64_t> begin;
  std::vector<std::int64_t> count;

  std::int64_t elements() const;
  friend bool operator==(const TensorBlock&, const TensorBlock&) = default;
};

/// Splits a range of elements, counted in row-major order, into boxes in that order. Pure.
std::vector<TensorBlock> boxes_of(std::span<const std::int64_t> shape, core::Range elements);

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

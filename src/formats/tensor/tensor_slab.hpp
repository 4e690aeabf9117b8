#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "core/range.hpp"

/// Runs of a tensor's elements, counted in row-major order whatever its strides.
namespace hortator::formats {

/// In host memory, in row-major order, as it is stored: its bytes can be taken as they are. Not so a tensor whose
/// operators come to somebody else first (a paged parameter): its memory may come and go.
bool lies_flat(const at::Tensor& tensor);
/// Itself, or a copy, such that it lies flat.
at::Tensor ready_to_store(const at::Tensor& tensor);

/// Cuts `elements` of `tensor` into views of at most `most` elements, in row-major order, and hands each on.
void for_each_piece(const at::Tensor& tensor, core::Range elements, std::int64_t most,
                    const std::function<void(const at::Tensor&)>& work);

/// Elements that lie one after the other into those of `tensor` from `begin` on, in its type and on its device.
void scatter(const at::Tensor& flat, const at::Tensor& tensor, std::int64_t begin);

}  // namespace hortator::formats

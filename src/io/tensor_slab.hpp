#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "base/shard.hpp"

/// Runs of a tensor's elements, counted in row-major order whatever its strides.
namespace hortator::io {

/// In host memory, in row-major order, as it is stored: its bytes can be taken as they are.
bool lies_flat(const at::Tensor& tensor);

/// Cuts `elements` of `tensor` into views of at most `most` elements, in row-major order, and hands each on.
void for_each_piece(const at::Tensor& tensor, shard::Range elements, std::int64_t most,
                    const std::function<void(const at::Tensor&)>& work);

}  // namespace hortator::io

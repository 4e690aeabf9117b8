#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "base/shard.hpp"

/// Runs of a tensor's elements, counted in row-major order whatever its strides.
namespace hortator::io {

/// Cuts `elements` of `tensor` into views of at most `most` elements, in row-major order, and hands each on.
void for_each_piece(const at::Tensor& tensor, shard::Range elements, std::int64_t most,
                    const std::function<void(const at::Tensor&)>& work);

}  // namespace hortator::io

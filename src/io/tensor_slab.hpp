#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "base/shard.hpp"
#include "io/raw_file.hpp"

/// Runs of a tensor's elements, counted in row-major order whatever its strides, between memory or device and a file.
/// What does not lie in host memory as the file wants it is moved in bounded pieces.
namespace hortator::io {

/// Cuts `elements` of `tensor` into views of at most `most` elements, in row-major order, and hands each on.
void for_each_piece(const at::Tensor& tensor, shard::Range elements, std::int64_t most,
                    const std::function<void(const at::Tensor&)>& work);

/// `offset` is where the first of `elements` goes.
void write_slab(const RawFile& file, std::int64_t offset, const at::Tensor& tensor, shard::Range elements);
void read_slab(const RawFile& file, std::int64_t offset, const at::Tensor& tensor, shard::Range elements);

}  // namespace hortator::io

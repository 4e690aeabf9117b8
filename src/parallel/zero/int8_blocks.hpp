#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

/// Values as 8-bit integers, with one scale in fp32 for each block of them: little more than a quarter of fp32's bytes.
/// Symmetric: a value is its integer, from -127 to 127, times the scale. Pure; on any device.
namespace hortator::parallel {

/// Values that share a scale. The grain of the shard plan is a multiple, so that a block never holds values of two
/// parameters or of two ranks: what a value becomes depends only on its parameter, and not on the number of ranks.
inline constexpr std::int64_t int8_block_values = 64;
inline constexpr std::int64_t int8_block_bytes = 4 + int8_block_values;

/// Whether values of the type can be packed: those of fp32, bf16 and fp16.
bool packs_int8(at::ScalarType type);

/// The values, whole blocks of them, as bytes: for each block its scale, then its integers. Each value is off by half
/// of its block's scale at most, which is 1/127 of the block's largest value. A block with a value that is not finite
/// becomes NaN as a whole.
at::Tensor pack_int8(const at::Tensor& values);

/// Writes to `values` what pack_int8() has packed. `packed` may be the last bytes of the memory of `values`.
void unpack_int8(const at::Tensor& packed, const at::Tensor& values);

}  // namespace hortator::parallel

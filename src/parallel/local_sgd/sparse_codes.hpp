#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

/// The largest of each 4096 numbers, as places and codes of 2 bits: less than a hundredth of fp32's bytes. Pure; on any
/// device.
namespace hortator::parallel {

inline constexpr std::int64_t sparse_chunk = 4096;
inline constexpr std::int64_t sparse_kept = 64;  ///< of each chunk

struct SparseCodes {
  at::Tensor entries;  ///< 16-bit, chunks x sparse_kept: 12 bits of place, one for the larger level, one for the sign
  at::Tensor levels;   ///< fp32, chunks x 2: the mean of the smaller kept numbers without signs, and of the larger ones
};

/// The codes of fp32 numbers, whole chunks of them.
SparseCodes pack_sparse(const at::Tensor& values);

/// Adds to `values` what pack_sparse() has packed.
void add_sparse(const SparseCodes& codes, const at::Tensor& values);

}  // namespace hortator::parallel

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/format.hpp"
#include "core/range.hpp"

/// Which rank writes which elements. Pure functions.
namespace hortator::checkpoint {

/// The size of a tensor to be written.
struct TensorSize {
  std::int64_t elements = 0;
  std::int64_t element_bytes = 1;  ///< a power of two
};

/// A range of elements of one tensor, which one rank writes.
struct TensorSlice {
  std::size_t tensor = 0;
  core::Range elements;

  friend bool operator==(const TensorSlice&, const TensorSlice&) = default;
};

/// What `rank` of `ranks` writes. The bytes of all tensors, one after the other, are distributed in equal contiguous
/// parts, so that each rank writes one range of the file. Each border then moves to a multiple of `grain_bytes` if it
/// is within a larger tensor, otherwise to the nearest end of the tensor, so that small tensors are not cut. No two
/// ranks write to the same block.
std::vector<TensorSlice> slices_of(std::span<const TensorSize> tensors, int ranks, int rank,
                                   std::int64_t grain_bytes = block_bytes);

}  // namespace hortator::checkpoint

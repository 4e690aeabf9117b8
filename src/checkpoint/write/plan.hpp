#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/format.hpp"
#include "core/range.hpp"

/// Which rank writes what. Pure.
namespace hortator::checkpoint {

/// A tensor to be written, as the planner sees it.
struct Extent {
  std::int64_t elements = 0;
  std::int64_t element_bytes = 1;  ///< a power of two
};

/// A run of elements of one tensor.
struct Slab {
  std::size_t tensor = 0;
  core::Range elements;

  friend bool operator==(const Slab&, const Slab&) = default;
};

/// What `rank` of `ranks` writes. All tensors, one after the other, are a line of bytes that is dealt out in equal
/// contiguous parts, so each rank writes one stretch of the file; the borders then move to a multiple of the grain
/// within a large tensor, or to the nearest edge of a small one (that is not larger), so that small ones stay whole. No
/// two ranks write a part of the same block.
std::vector<Slab> slabs_of(std::span<const Extent> tensors, int ranks, int rank,
                           std::int64_t grain_bytes = block_bytes);

}  // namespace hortator::checkpoint

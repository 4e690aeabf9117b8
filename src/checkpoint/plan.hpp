#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/shard.hpp"

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
  shard::Range elements;

  friend bool operator==(const Slab&, const Slab&) = default;
};

/// Tensors are cut only at multiples of this, and those that are not larger never.
constexpr std::int64_t default_grain_bytes = std::int64_t{1} << 20;

/// What `rank` of `ranks` writes. All tensors, one after the other, are a line of bytes that is dealt out in equal
/// contiguous parts, so each rank writes one stretch of the file; the borders then move to a multiple of the grain
/// within a large tensor, or to the nearest edge of a small one, so that small ones stay whole.
std::vector<Slab> slabs_of(std::span<const Extent> tensors, int ranks, int rank,
                           std::int64_t grain_bytes = default_grain_bytes);

}  // namespace hortator::checkpoint

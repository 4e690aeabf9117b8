#pragma once

#include <c10/core/ScalarType.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/range.hpp"

/// Which rank owns which elements of each parameter. Pure.
namespace hortator::parallel {

/// What items must have in common to lie in one array.
struct ArrayKind {
  at::ScalarType type = at::kFloat;
  bool paged = false;   ///< offloaded or sharded: not in memory between uses
  bool frozen = false;  ///< without gradients
  bool cast = false;    ///< operators mostly cast it to a 16-bit type, in which it is gathered
  bool int8 = false;    ///< gathered in int8 blocks

  auto operator<=>(const ArrayKind&) const = default;
};

/// A parameter, as the planner sees it.
struct ShardItem {
  std::int64_t elements = 0;
  std::int64_t element_bytes = 4;
  ArrayKind kind = {};
};

struct ShardLimits {
  std::int64_t first_bytes = std::int64_t{1} << 20;  ///< of the first array: small, so that its gradients travel early
  std::int64_t bytes = std::int64_t{25} << 20;       ///< an array is closed once it holds this many
  /// Items, and the ranks' parts, begin at multiples of this number of elements: kernels work on whole vectors, and
  /// each element is computed in the same way whichever rank owns it.
  std::int64_t grain = 64;
};

/// Items one after the other in flat arrays, each divided into one part of the same size for each rank. The divisions
/// cut through items, so that all ranks own the same number of bytes whatever the items are.
struct ShardPlan {
  struct Flat {
    ArrayKind kind = {};
    std::int64_t elements = 0;            ///< a multiple of ranks times the grain
    std::vector<std::size_t> items = {};  ///< in the order in which they lie
  };
  struct ItemPosition {
    std::size_t flat = 0;
    std::int64_t offset = 0;
    std::int64_t elements = 0;
  };

  int ranks = 1;
  std::vector<Flat> flats = {};
  std::vector<ItemPosition> positions = {};  ///< of each item

  std::int64_t part_elements(std::size_t flat) const { return flats[flat].elements / ranks; }
  /// What `rank` owns of an array.
  core::Range part(std::size_t flat, int rank) const {
    const auto elements = part_elements(flat);
    return {rank * elements, (rank + 1) * elements};
  }
  /// What `rank` owns of an item, counted in the item's elements: one range, empty for most ranks.
  core::Range owned(std::size_t item, int rank) const;
};

/// Items are laid out from the last to the first, the order in which backward makes gradients as a rule.
ShardPlan plan_shards(std::span<const ShardItem> items, int ranks, const ShardLimits& limits = {});

}  // namespace hortator::parallel

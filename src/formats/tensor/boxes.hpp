#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/range.hpp"

namespace hortator::formats {

/// A block of a tensor: `begin[d]` to `begin[d] + count[d]` in each dimension.
struct Box {
  std::vector<std::int64_t> begin;
  std::vector<std::int64_t> count;

  std::int64_t elements() const;
  friend bool operator==(const Box&, const Box&) = default;
};

/// A run of elements, counted in row-major order, as blocks that follow each other in that order. Pure.
std::vector<Box> boxes_of(std::span<const std::int64_t> shape, core::Range elements);

}  // namespace hortator::formats

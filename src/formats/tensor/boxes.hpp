#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/range.hpp"

namespace hortator::formats {

/// A box of a tensor (a hyperslab of HDF5): from `begin[d]` to `begin[d] + count[d]` in each dimension d.
struct TensorBlock {
  std::vector<std::int64_t> begin;
  std::vector<std::int64_t> count;

  std::int64_t elements() const;
  friend bool operator==(const TensorBlock&, const TensorBlock&) = default;
};

/// Splits a range of elements, counted in row-major order, into boxes in that order. Pure.
std::vector<TensorBlock> boxes_of(std::span<const std::int64_t> shape, core::Range elements);

}  // namespace hortator::formats

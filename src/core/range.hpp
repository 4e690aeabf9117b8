#pragma once

#include <algorithm>
#include <cstdint>

/// Ranges of elements, and how they are distributed over equal parts.
namespace hortator::core {

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

/// The number of groups of `size` that hold `count`; the last one may be smaller.
constexpr std::int64_t ceil_div(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

/// The part of [0, total) that `part` of `parts` owns: contiguous, in order, sizes differ by at most one, the first
/// ones larger.
constexpr Range balanced(std::int64_t total, std::int64_t parts, std::int64_t part) {
  const std::int64_t base = total / parts;
  const std::int64_t larger = total % parts;
  const std::int64_t begin = part * base + std::min(part, larger);
  return {begin, begin + base + (part < larger ? 1 : 0)};
}

/// The same, with every boundary except the last on a multiple of `grain`.
constexpr Range aligned(std::int64_t total, std::int64_t parts, std::int64_t part, std::int64_t grain) {
  const Range blocks = balanced(ceil_div(total, grain), parts, part);
  return {std::min(blocks.begin * grain, total), std::min(blocks.end * grain, total)};
}

}  // namespace hortator::core

#include "machine/races/byte_pattern.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace hortator::machine {
namespace {

// How far b begins behind a place of a's pattern.
std::size_t steps_behind(std::size_t a, std::size_t b, std::size_t period) {
  return (b % period + period - a % period) % period;
}

}  // namespace

BytePattern pattern_of(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
                       std::size_t element_bytes) {
  std::vector<std::pair<std::size_t, std::size_t>> steps;  // in bytes, and how many
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1 && strides[i] > 0)
      steps.emplace_back(static_cast<std::size_t>(strides[i]) * element_bytes, static_cast<std::size_t>(sizes[i]));
  std::ranges::sort(steps);
  BytePattern pattern{.width = element_bytes};
  std::size_t reach = 0;  // up to where the blocks follow each other
  for (const auto& [step, count] : steps) {
    if (pattern.period == 0 && step <= pattern.width) {
      pattern.width += step * (count - 1);
      continue;
    }
    if (pattern.period == 0) pattern.period = reach = step;
    if (step % pattern.period != 0 || step > reach) return {.is_exact = false};
    reach += step * (count - 1);
  }
  return pattern.period == 0 ? BytePattern() : pattern;
}

namespace {

// With other periods, block by block.
bool shares_a_block(const PatternedRange& a, const PatternedRange& b) {
  for (auto begin = a.begin; begin < a.end; begin += a.pattern.period) {
    if (share_bytes({.begin = begin, .end = std::min(begin + a.pattern.width, a.end)}, b)) return true;
  }
  return false;
}

}  // namespace

bool share_bytes(const PatternedRange& a, const PatternedRange& b) {
  const auto first = std::max(a.begin, b.begin);
  const auto last = std::min(a.end, b.end);
  if (first >= last) return false;
  if (a.begin == b.begin) return true;
  if (!a.pattern.is_exact || !b.pattern.is_exact) return false;
  if (a.pattern.period == 0 && b.pattern.period == 0) return true;
  if (b.pattern.period == 0) return share_bytes(b, a);
  const auto period = b.pattern.period;
  if (a.pattern.period != 0 && a.pattern.period != period)
    return a.pattern.period > period ? shares_a_block(a, b) : shares_a_block(b, a);
  const auto width = a.pattern.period == 0 ? last - first : a.pattern.width;
  const auto behind = steps_behind(a.pattern.period == 0 ? first : a.begin, b.begin, period);
  return behind < width || period - behind < b.pattern.width;
}

bool covers(const PatternedRange& all, const PatternedRange& part) {
  if (part.begin < all.begin || all.end < part.end || !all.pattern.is_exact) return false;
  const auto period = all.pattern.period;
  if (period == 0) return true;
  if (part.pattern.period != 0 && part.pattern.period != period) return false;
  const auto width = part.pattern.period == 0 ? part.end - part.begin : part.pattern.width;
  return steps_behind(all.begin, part.begin, period) + width <= all.pattern.width;
}

}  // namespace hortator::machine

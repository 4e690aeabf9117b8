#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hortator::machine {

/// A vector clock: for each timeline the last tick that happened before. Timeline 0 is the host, the others are
/// streams.
using Clock = std::vector<std::uint64_t>;

constexpr int host_timeline = 0;

inline std::uint64_t tick_of(const Clock& clock, int timeline) {
  const auto index = static_cast<std::size_t>(timeline);
  return index < clock.size() ? clock[index] : 0;
}

/// Makes `clock` come after `other`.
inline void join(Clock& clock, const Clock& other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

/// Starts the next piece of work of a timeline, and returns its tick.
inline std::uint64_t advance(Clock& clock, int timeline) {
  const auto index = static_cast<std::size_t>(timeline);
  if (clock.size() <= index) clock.resize(index + 1);
  return ++clock[index];
}

}  // namespace hortator::machine

#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Differences between the clocks of hosts, from what their ranks did together. Pure functions.
namespace hortator::tools {

/// A rank's stay in a collective that no rank leaves before all have entered.
struct Meeting {
  std::string group = {};
  std::uint64_t sequence = 0;
  double begin = 0;  ///< microseconds of the rank's clock
  double end = 0;
};

struct ClockOfRank {
  std::string host = {};  ///< ranks of one host have one clock
  std::vector<Meeting> meetings = {};
};

struct ClockAlignment {
  std::vector<double> offsets = {};  ///< of each rank: microseconds to add to its times; those of rank 0 stay
  /// By how much collectives contradict each other afterwards: the longest time from the first end of a collective to
  /// the last begin of the same one; 0 if all overlap.
  double contradiction = 0;
  /// Within which range an offset could lie, the widest of all hosts.
  double uncertainty = 0;
};

/// The offsets for which all collectives overlap or, if there are none, contradict each other least. Throws Error that
/// names a host whose ranks have met none of the others.
ClockAlignment align_clocks(const std::vector<ClockOfRank>& ranks);

}  // namespace hortator::tools

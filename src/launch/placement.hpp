#pragma once

#include <optional>

#include "launch/settings/settings.hpp"

namespace hortator::launching {

/// How many ranks where.
struct Placement {
  int ranks = 1;                           ///< in total
  std::optional<int> nodes = {};           ///< nothing: wherever the launcher puts them
  std::optional<int> ranks_per_node = {};  ///< as many on each
};

/// From any two of the three numbers, or the ranks alone. UsageError for too few, and for three that contradict each
/// other.
Placement placement(const Settings& settings);

/// Of ranks, nodes and ranks per node two are enough: what lower layers say beyond the first two that were said is
/// taken out, so that `-n 4` outranks a file with nodes and ranks per node. What one layer says stays together.
void settle_placement(std::vector<Layer>& layers);

}  // namespace hortator::launching

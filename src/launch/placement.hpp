#pragma once

#include <optional>
#include <string_view>

#include "launch/settings/settings.hpp"

namespace hortator::launching {

/// The number of ranks and their distribution over nodes.
struct RankPlacement {
  int ranks = 1;                           ///< in total
  std::optional<int> nodes = {};           ///< nothing: the launcher decides
  std::optional<int> ranks_per_node = {};  ///< equal on all nodes
  std::string_view one_for_each = "";      ///< "GPU" or "node" if no number of ranks was given
};

/// Computes the placement from any two of the three numbers, or from the ranks only. Without ranks there is one for
/// each GPU, or if only nodes are given, one on each, as with Slurm, PBS and torchrun. Ranks per node without nodes are
/// placed on the hosts that are listed, otherwise on `nodes_at_hand`. Throws UsageError for too few numbers and for
/// numbers that contradict each other.
RankPlacement placement(const Settings& settings, int nodes_at_hand = 1);

/// Two of ranks, nodes and ranks per node are enough. Removes from lower layers what exceeds the first two that are
/// given, so that `-n 4` overrides a file with nodes and ranks per node. The numbers of the first layer stay together.
/// The same for the three ways to give GPUs.
void settle_placement(std::vector<Layer>& layers);

}  // namespace hortator::launching

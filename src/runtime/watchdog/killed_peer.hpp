#pragma once

#include <optional>
#include <vector>

#include "runtime/ending/failure.hpp"
#include "runtime/watchdog/slot.hpp"

/// A rank that a signal has ended while the others lived, as the ranks of its node can report it. Pure.
namespace hortator::runtime {

struct NodeRank {
  RankRecord record;
  int last_signal = 0;  ///< as noted (last_signal.hpp); 0: nothing
};

/// Whether one of the node's ranks has been killed. Ranks that were ended by SIGTERM, as all are at the end of a job,
/// do not count.
bool has_killed_peer(const std::vector<NodeRank>& node);

/// The failure that the rank `own` reports, if one of the node's ranks has been killed: the first of those that live
/// does so.
std::optional<Failure> killed_peer(const std::vector<NodeRank>& node, int own);

}  // namespace hortator::runtime

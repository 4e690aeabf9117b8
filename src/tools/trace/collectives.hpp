#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/trace/clock_alignment.hpp"

/// The collectives in the traces of all ranks. Pure functions.
namespace hortator::tools {

/// A rank's part in one collective, in microseconds of one clock.
struct TracedCollective {
  std::string name = {};     ///< "all_reduce"
  std::string backend = {};  ///< "node"
  std::string group = {};    ///< the communicator's number, the same on all of its ranks
  std::uint64_t sequence = 0;
  std::int64_t bytes = 0;
  int size = 0;  ///< the group's ranks
  double begin = 0;
  double end = 0;          ///< of the call that starts it
  double wait_begin = -1;  ///< -1: the rank was not recorded while it waited, or did not wait
  double wait_end = -1;

  double over() const { return wait_end > end ? wait_end : end; }
};

/// Collects one rank's collectives from its events.
class CollectiveReader {
 public:
  void take(const nlohmann::ordered_json& event);
  /// In the order in which they began.
  std::vector<TracedCollective> collectives() const;

 private:
  std::map<std::pair<std::string, std::uint64_t>, TracedCollective> found_;
};

/// Those that no rank leaves before all have entered, which bound the differences of clocks.
std::vector<Meeting> meetings_of(const std::vector<TracedCollective>& collectives);

/// What all ranks of one collective know together.
struct JoinedCollective {
  std::vector<int> ranks = {};  ///< that recorded it, ascending
  int last_rank = 0;            ///< the rank that entered last
  double last_begin = 0;
  double first_begin = 0;
};
using JoinedCollectives = std::map<std::pair<std::string, std::uint64_t>, JoinedCollective>;
/// `of_ranks`: of each rank, in one clock.
JoinedCollectives join(const std::vector<std::vector<TracedCollective>>& of_ranks);

}  // namespace hortator::tools

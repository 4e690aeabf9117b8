#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/trace/collectives.hpp"
#include "tools/trace/trace_times.hpp"

/// Events of a rank as those of a trace of all ranks. Pure functions.
namespace hortator::tools {

/// Moves the events of one rank into the trace of all: to the common clock, to processes of their own and to numbers of
/// arrows that no other rank uses.
class RankEvents {
 public:
  /// `shift`: microseconds to add to times.
  RankEvents(int rank, std::string host, double shift) : rank_(rank), host_(std::move(host)), shift_(shift) {}

  void move(nlohmann::ordered_json& event);

 private:
  std::int64_t process_of(const nlohmann::ordered_json& process);

  int rank_;
  std::string host_;
  double shift_;
  std::map<std::string, std::int64_t> processes_;
};

/// The rank's collectives while they are under way, each on a line of its own below the rank's threads, with the ranks
/// of its group and the one that entered last. Times are in the common clock.
std::vector<nlohmann::ordered_json> under_way_events(int rank, const std::vector<TracedCollective>& collectives,
                                                     const JoinedCollectives& joined);

/// A rank without a device as a rank whose device computes its operators and carries its collectives, for programs that
/// look at devices only (HolisticTraceAnalysis): a stream for each thread, and one for collectives under way.
std::vector<nlohmann::ordered_json> device_events(int rank, const std::vector<TracedCollective>& collectives,
                                                  const std::vector<TracedOperator>& operators);

}  // namespace hortator::tools

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/identity/flight_record.hpp"

/// The last collectives of ranks before a failure or stall (status/flight.jsonl). Pure functions.
namespace hortator::tools {

/// How far a rank has come in one group.
struct GroupProgress {
  std::string group = {};
  int size = 0;  ///< the group's ranks
  int rank = 0;
  std::uint64_t sequence = 0;  ///< of the last collective that it began
  std::string name = {};
  std::uint64_t bytes = 0;
  bool is_inside = false;  ///< it was still in it
  double seconds = 0;      ///< from the begin of that stay to its end, or to the last time that any rank has noted
};
/// Each rank in each group, by group, then by rank. Groups in which ranks have come differently far are first.
std::vector<GroupProgress> progress_of(const std::vector<runtime::FlightRecord>& flight);

/// A table for the terminal: ranks of a group that have come equally far share a line.
std::string flight_table(const std::vector<runtime::FlightRecord>& flight);

/// Events for Perfetto: a process for each rank.
std::vector<nlohmann::ordered_json> flight_events(const std::vector<runtime::FlightRecord>& flight);

}  // namespace hortator::tools

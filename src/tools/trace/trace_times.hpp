#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tools/trace/collectives.hpp"

/// Where the time of a rank goes in its trace. Pure functions.
namespace hortator::tools {

/// A range of time, in microseconds.
struct TimeRange {
  double begin = 0;
  double end = 0;
};
/// The same time as ranges that do not overlap, ascending.
std::vector<TimeRange> united(std::vector<TimeRange> ranges);
double length_of(const std::vector<TimeRange>& united);
/// The time that is in both.
double common_length(const std::vector<TimeRange>& one, const std::vector<TimeRange>& other);

/// An operator that no other operator of its thread contains.
struct TracedOperator {
  std::string name = {};
  std::int64_t thread = 0;
  TimeRange time = {};
};

/// Collects the operators that one rank computes.
class OperatorReader {
 public:
  void take(const nlohmann::ordered_json& event);
  /// The outermost ones, by thread and time.
  std::vector<TracedOperator> operators() const;
  /// Whether there are kernels of a device: then these are the computation.
  bool has_kernels() const { return !kernels_.empty(); }
  const std::vector<TimeRange>& kernels() const { return kernels_; }
  int steps() const { return steps_; }

 private:
  std::vector<TracedOperator> all_;
  std::vector<TimeRange> kernels_;
  int steps_ = 0;
};

struct RankTimes {
  int rank = 0;
  std::string host = {};
  int steps = 0;  ///< of the profile's schedule
  std::size_t collectives = 0;
  std::int64_t bytes = 0;    ///< of the collectives
  double computing = 0;      ///< microseconds
  double communicating = 0;  ///< during which a collective is under way
  double overlapping = 0;    ///< of it, during which the rank computes
  double waiting = 0;        ///< for ranks that enter collectives later
  std::size_t last = 0;      ///< how often this rank entered last, of the collectives that several recorded
};

/// A collective is under way from its call to the end of the wait for it. `shift`: what the operators' times need to be
/// in the clock of the collectives.
RankTimes times_of(const std::vector<TracedCollective>& collectives, const OperatorReader& operators,
                   const JoinedCollectives& joined, int rank, double shift = 0);

/// A table for the terminal.
std::string times_table(const std::vector<RankTimes>& ranks);

}  // namespace hortator::tools

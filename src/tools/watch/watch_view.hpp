#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "observe/status/restart_record.hpp"
#include "observe/status/status_record.hpp"
#include "tools/watch/metrics.hpp"

/// Formats the state of a run as a page of text.
namespace hortator::tools {

struct CheckpointFact {
  std::string name = "";
  double at = 0;  ///< seconds since 1970
};

struct WatchFacts {
  std::string folder = "";
  std::vector<observe::RankStatus> ranks = {};        ///< the ranks of one run that have written a status
  std::vector<observe::Session> sessions = {};        ///< in order
  std::vector<observe::RestartRecord> attempts = {};  ///< that failed under `hortator launch`, in order
  std::vector<MetricRow> rows = {};                   ///< a sample of the logged rows, with the last ones
  std::vector<CheckpointFact> checkpoints = {};       ///< newest first
  std::optional<std::string> outcome = {};            ///< "finished", "stopped"
  std::optional<std::string> failure = {};            ///< the rank and the problem
  bool is_killed = false;                             ///< without a record, a rank's process on this machine has ended
  std::optional<double> deadline = {};                ///< of the job, from the scheduler
  std::vector<std::pair<std::string, std::string>> arguments = {};  ///< of a task of a sweep
};

struct ViewOptions {
  int columns = 80;
  bool colour = false;
  bool utf8 = true;
  double now = 0;
};

/// Whether the run has ended, in whatever way.
bool has_ended(const WatchFacts& facts);

/// The state of a run in one word: "failed", "finished", "stopped", "killed", "unknown" (no status was written),
/// "over", "silent" (its status is overdue), or "running".
std::string state_of(const WatchFacts& facts, double now);

/// The rank that reports for all: rank 0, null if it has written no status.
const observe::RankStatus* main_rank(const WatchFacts& facts);

/// The latest logged values: those that the main rank reports, otherwise the last row.
std::vector<std::pair<std::string, double>> latest_values(const WatchFacts& facts);

/// Lines of at most `columns` each.
std::string watch_view(const WatchFacts& facts, const ViewOptions& options);

}  // namespace hortator::tools

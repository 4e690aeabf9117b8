#pragma once

#include <optional>
#include <string>
#include <vector>

#include "observe/status/status_record.hpp"
#include "tools/plot/metrics.hpp"

/// A run as a page of text: pure.
namespace hortator::tools {

struct CheckpointFact {
  std::string name = "";
  double at = 0;  ///< seconds since 1970
};

struct WatchFacts {
  std::string folder = "";
  std::vector<observe::RankStatus> ranks = {};   ///< of one run, those that have told of themselves
  std::vector<observe::Session> sessions = {};   ///< the first one first
  std::vector<MetricRow> rows = {};              ///< some of those that were logged, the last ones among them
  std::vector<CheckpointFact> checkpoints = {};  ///< the newest first
  std::optional<std::string> outcome = {};       ///< "finished", "stopped"
  std::optional<std::string> failure = {};       ///< what went wrong
  std::optional<double> deadline = {};           ///< of the job, by the scheduler's word
};

struct ViewOptions {
  int columns = 80;
  bool colour = false;
  bool utf8 = true;
  double now = 0;
};

/// Lines of at most `columns` each.
std::string watch_view(const WatchFacts& facts, const ViewOptions& options);

}  // namespace hortator::tools

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "observe/status/status_record.hpp"

namespace hortator::observe {

constexpr auto metrics_file = "metrics.prom";

/// The figures of a run, for its metrics.
struct MetricsFacts {
  std::string run = "";                ///< its folder
  std::string state = "running";       ///< as `hortator watch` has it
  std::vector<RankStatus> ranks = {};  ///< by rank; those that are known
  std::optional<int> restarts = {};
  std::optional<int> failed_attempts = {};
  std::optional<int> checkpoints = {};
  std::optional<double> checkpoint_at = {};  ///< of the newest
  std::optional<double> deadline = {};       ///< of the job, if the ranks do not know it
};

/// The text format of Prometheus, which node_exporter's textfile collector reads; with its last line it is OpenMetrics,
/// too. All figures are gauges with the labels run and job. Those of ranks are the mean and the extremes over ranges
/// of ranks: the nodes, or up to 64 groups of neighbouring nodes. `now` in seconds since 1970. Pure.
std::string metrics_text(const MetricsFacts& facts, double now);

}  // namespace hortator::observe

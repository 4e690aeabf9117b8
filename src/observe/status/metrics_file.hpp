#pragma once

#include <chrono>
#include <filesystem>

#include "observe/status/metrics_text.hpp"

namespace hortator::observe {

/// Replaces the file metrics.prom in a run's folder now and then, by rename. Main rank only.
class MetricsFile {
 public:
  using Clock = std::chrono::steady_clock;

  /// At most every `period`; 0: never. A write that takes long puts the next one off, so that all of them take at most
  /// a thousandth of the time.
  MetricsFile(std::filesystem::path run_folder, std::chrono::duration<double> period);

  bool is_on() const { return period_.count() > 0; }
  bool is_due() const { return is_on() && Clock::now() >= next_; }
  /// Reads the status rows of the other ranks, unless they are too many for that, and writes the file. `own`: the row
  /// that this rank has just written.
  void write(const RankStatus& own);

 private:
  std::filesystem::path folder_;
  std::chrono::duration<double> period_;
  Clock::time_point next_;
  std::optional<int> restarts_;
};

/// HORTATOR_METRICS_SECONDS, else 15 s. Throws UsageError for a value that is not a number from 0.
std::chrono::duration<double> metrics_period();

}  // namespace hortator::observe

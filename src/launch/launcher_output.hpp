#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::launching {

/// A rank that could not report its end, because a signal or _exit() ended it, as its launcher reports it.
struct KilledRank {
  int rank = 0;
  long pid = 0;  ///< 0: unknown
  std::string host = "";
  int signal = 0;  ///< 0: it exited without finalising MPI
};

/// Parses what Open MPI's launcher reports of a rank that a signal ended, or that has not finalised MPI; nothing for
/// any other text.
std::optional<KilledRank> parse_killed_rank(std::string_view report);

/// Parses a line of srun about a task that a signal ended, such as "srun: error: n2: task 3: Killed"; nothing for any
/// other line, and for one about several tasks: srun ended all of these but one.
std::optional<KilledRank> parse_srun_line(std::string_view line);

/// Separates Open MPI's reports about the end of a job from the output of the ranks, which the launcher writes to the
/// same stream. All other bytes pass unchanged and at once, unless they may be the beginning of a report. Pure.
class LauncherOutput {
 public:
  /// Returns the bytes to pass on now.
  std::string take(std::string_view bytes);
  /// Returns what was held back as the possible beginning of a report. Call it when no more bytes come for a while.
  std::string release();
  /// The same at the end of the stream: also an incomplete report.
  std::string finish();

  const std::vector<std::string>& reports() const { return reports_; }
  /// The first rank that was reported as ended by a signal or without finalising MPI, by Open MPI or srun.
  std::optional<KilledRank> killed_rank() const;
  /// Whether a rank has printed why it failed.
  bool has_failure_line() const { return has_failure_line_; }

 private:
  void observe(char c);

  std::string line_;  ///< what was passed on of the current line
  std::optional<KilledRank> killed_task_;
  std::string held_;
  bool has_failure_line_ = false;
  bool is_certain_ = false;  ///< `held_` is the beginning of a report
  bool is_after_report_ = false;
  char last_ = '\n';  ///< the last byte that was passed on
  std::vector<std::string> reports_;
};

}  // namespace hortator::launching

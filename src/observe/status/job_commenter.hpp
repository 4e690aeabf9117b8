#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "observe/status/job_comment.hpp"

namespace hortator::observe {

/// Sets the comment of the job that this run is in, at most every `period`. The scheduler's command runs in a thread,
/// so that a slow scheduler holds up nothing; after a failure, no other one is started. Main rank only.
class JobCommenter {
 public:
  using Clock = std::chrono::steady_clock;

  /// `period` 0: never.
  JobCommenter(std::string job, std::chrono::duration<double> period);
  /// Waits for a command that runs, which takes at most some seconds.
  ~JobCommenter();
  JobCommenter(const JobCommenter&) = delete;
  JobCommenter& operator=(const JobCommenter&) = delete;

  /// Does nothing before it is due, except for the row of the end, which is always reported if one was before.
  void report(const RankStatus& main);

 private:
  std::optional<double> samples_per_second(const RankStatus& main);
  void run(const std::vector<std::string>& command);
  void join();

  std::string job_;
  std::chrono::duration<double> period_;
  Clock::time_point next_;
  std::thread thread_;
  bool has_reported_ = false;
  std::atomic<bool> is_running_ = false;  ///< the command
  bool has_failed_ = false;               ///< written by the thread, read after join()
  bool is_refusal_logged_ = false;
  double samples_at_ = 0;
  std::int64_t samples_ = 0;
};

/// HORTATOR_COMMENT_SECONDS, else five minutes. Throws UsageError for a value that is not a whole number from 0.
std::chrono::duration<double> comment_period();

}  // namespace hortator::observe

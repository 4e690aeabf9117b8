#pragma once

#include <chrono>
#include <optional>

#include "runtime/ending/deadline.hpp"

namespace hortator::accelerator {

/// What one rank knows of the time that the job has left.
class JobTime {
 public:
  JobTime();

  /// By the environment alone.
  std::optional<std::chrono::seconds> known_left() const;
  /// By the scheduler's word too, which is asked at most every ten minutes: a limit can be changed.
  std::optional<std::chrono::seconds> ask_left();

  /// How long until SIGKILL, after SIGTERM so long ago.
  std::chrono::milliseconds until_killed(std::chrono::milliseconds since_signal) const;

 private:
  std::optional<runtime::Deadline> known_;
  std::optional<runtime::Deadline> asked_;
  std::optional<std::chrono::steady_clock::time_point> asked_at_;
  std::chrono::milliseconds grace_;
};

}  // namespace hortator::accelerator

#pragma once

#include <chrono>
#include <optional>

#include "runtime/ending/deadline.hpp"

namespace hortator::accelerator {

/// This rank's knowledge of the time that the job has left.
class JobTime {
 public:
  JobTime();

  /// The time left by the environment only; nothing if unknown.
  std::optional<std::chrono::seconds> known_left() const;
  /// The time left, also as the scheduler reports it. Asks it at most every ten minutes, since limits can change.
  std::optional<std::chrono::seconds> ask_left();

  /// How long before the end the run stops, in addition to the time for its saves.
  std::chrono::milliseconds margin() const { return margin_; }

  /// The time until SIGKILL if SIGTERM came `since_signal` ago.
  std::chrono::milliseconds until_killed(std::chrono::milliseconds since_signal) const;

 private:
  std::optional<runtime::Deadline> known_;
  std::optional<runtime::Deadline> asked_;
  std::optional<std::chrono::steady_clock::time_point> asked_at_;
  std::chrono::milliseconds margin_;
  std::chrono::milliseconds grace_;
};

}  // namespace hortator::accelerator

#pragma once

#include <chrono>
#include <cstdint>

/// Decides when a running bar is redrawn. Pure: the caller passes the time.
namespace hortator::observe {

using Clock = std::chrono::steady_clock;

/// On a terminal, ten times a second. In a log, first after 5 seconds, then after 5, 10, 20 and 40 more, then every
/// minute: a short run shows progress and a long run does not fill the disk.
class Pace {
 public:
  enum class Medium { terminal, log };

  Pace(Medium medium, Clock::time_point start);

  bool is_due(Clock::time_point now) const { return now >= next_; }
  void shown(Clock::time_point now);

 private:
  Clock::duration wait_;
  Clock::duration max_wait_;
  Clock::time_point next_;
};

/// Recent steps per second: a moving average over about ten seconds, so that a slow first step does not distort the
/// remaining time.
class Rate {
 public:
  /// Records `done` steps after `elapsed` seconds. Call it when a line is drawn, not at each step.
  void update(std::int64_t done, double elapsed);
  double per_second() const { return per_second_; }

 private:
  std::int64_t done_ = 0;
  double elapsed_ = 0;
  double per_second_ = 0;
};

}  // namespace hortator::observe

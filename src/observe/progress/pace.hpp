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

}  // namespace hortator::observe

#pragma once

#include <chrono>
#include <cstdint>

/// When a running bar is shown again: pure, the caller says what time it is.
namespace hortator::observe {

using Clock = std::chrono::steady_clock;

/// On a terminal, ten times a second. In a log first after five seconds, then after 5, 10, 20, 40 more, then each
/// minute: a short run shows signs of life, a long one does not fill the disk.
class Pace {
 public:
  enum class Medium { terminal, log };

  Pace(Medium medium, Clock::time_point start);

  bool is_due(Clock::time_point now) const { return now >= next_; }
  void shown(Clock::time_point now);

 private:
  Clock::duration wait_;
  Clock::duration longest_;
  Clock::time_point next_;
};

}  // namespace hortator::observe

#pragma once

#include <cstdint>

namespace hortator::observe {

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

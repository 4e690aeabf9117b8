#pragma once

#include <cstdint>

namespace hortator::observe {

/// Steps a second of late: a moving average over about the last ten seconds, so that a slow first step does not spoil
/// the time left.
class Rate {
 public:
  /// `done` steps after `elapsed` seconds. Called when a line is drawn, not each step.
  void update(std::int64_t done, double elapsed);
  double per_second() const { return per_second_; }

 private:
  std::int64_t done_ = 0;
  double elapsed_ = 0;
  double per_second_ = 0;
};

}  // namespace hortator::observe

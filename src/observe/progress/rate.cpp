#include "observe/progress/rate.hpp"

#include <algorithm>
#include <cmath>

namespace hortator::observe {
namespace {

constexpr double memory_seconds = 10;

}  // namespace

void Rate::update(std::int64_t done, double elapsed) {
  // An interval without a step is counted once the step is done.
  if (done <= done_ || elapsed <= elapsed_) return;
  const double interval = elapsed - elapsed_;
  const double latest = static_cast<double>(done - done_) / interval;
  const double weight = done_ == 0 ? 1 : 1 - std::exp(-interval / memory_seconds);
  per_second_ += weight * (latest - per_second_);
  done_ = done;
  elapsed_ = elapsed;
}

}  // namespace hortator::observe

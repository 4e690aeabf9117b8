#include "observe/progress/pace.hpp"

#include <algorithm>
#include <cmath>

namespace hortator::observe {
namespace {

using namespace std::chrono_literals;

constexpr Clock::duration redraw_interval = 100ms;
constexpr Clock::duration first_line = 5s;
constexpr Clock::duration max_silence = 60s;

constexpr double memory_seconds = 10;

}  // namespace

Pace::Pace(Medium medium, Clock::time_point start)
    : wait_(medium == Medium::terminal ? redraw_interval : first_line),
      max_wait_(medium == Medium::terminal ? redraw_interval : max_silence),
      next_(medium == Medium::terminal ? start : start + wait_) {}

void Pace::shown(Clock::time_point now) {
  next_ = now + wait_;
  wait_ = std::min(2 * wait_, max_wait_);
}

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

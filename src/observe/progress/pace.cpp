#include "observe/progress/pace.hpp"

#include <algorithm>

namespace hortator::observe {
namespace {

using namespace std::chrono_literals;

constexpr Clock::duration redraw_interval = 100ms;
constexpr Clock::duration first_line = 5s;
constexpr Clock::duration max_silence = 60s;

}  // namespace

Pace::Pace(Medium medium, Clock::time_point start)
    : wait_(medium == Medium::terminal ? redraw_interval : first_line),
      max_wait_(medium == Medium::terminal ? redraw_interval : max_silence),
      next_(medium == Medium::terminal ? start : start + wait_) {}

void Pace::shown(Clock::time_point now) {
  next_ = now + wait_;
  wait_ = std::min(2 * wait_, max_wait_);
}

}  // namespace hortator::observe

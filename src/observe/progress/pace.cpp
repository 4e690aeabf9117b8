#include "observe/progress/pace.hpp"

#include <algorithm>

namespace hortator::observe {
namespace {

using namespace std::chrono_literals;

constexpr Clock::duration blink = 100ms;
constexpr Clock::duration first_line = 5s;
constexpr Clock::duration longest_silence = 60s;

}  // namespace

Pace::Pace(Medium medium, Clock::time_point start)
    : wait_(medium == Medium::terminal ? blink : first_line),
      longest_(medium == Medium::terminal ? blink : longest_silence),
      next_(medium == Medium::terminal ? start : start + wait_) {}

void Pace::shown(Clock::time_point now) {
  next_ = now + wait_;
  wait_ = std::min(2 * wait_, longest_);
}

}  // namespace hortator::observe

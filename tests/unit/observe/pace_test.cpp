#include "observe/progress/pace.hpp"

#include <vector>

#include "support/catch.hpp"

using namespace hortator::observe;
using namespace std::chrono_literals;

namespace {

const Clock::time_point start{1h};

// The times, in milliseconds after the start, at which a loop with a step every `step` draws.
std::vector<long> moments(Pace::Medium medium, Clock::duration step, Clock::duration length) {
  std::vector<long> shown;
  Pace pace(medium, start);
  for (auto now = start; now <= start + length; now += step) {
    if (!pace.is_due(now)) continue;
    pace.shown(now);
    shown.push_back(static_cast<long>((now - start) / 1ms));
  }
  return shown;
}

}  // namespace

TEST_CASE("a terminal is redrawn at once and then at most ten times a second") {
  CHECK(moments(Pace::Medium::terminal, 1ms, 300ms) == std::vector<long>{0, 100, 200, 300});
  CHECK(moments(Pace::Medium::terminal, 250ms, 1s) == std::vector<long>{0, 250, 500, 750, 1000});
  CHECK(moments(Pace::Medium::terminal, 1ms, 10s).size() == 101);
}

TEST_CASE("a log gets its first line after five seconds, then at growing intervals up to a minute") {
  CHECK(moments(Pace::Medium::log, 1s, 4s).empty());
  CHECK(moments(Pace::Medium::log, 1s, 260s) ==
        std::vector<long>{5000, 10000, 20000, 40000, 80000, 140000, 200000, 260000});
  CHECK(moments(Pace::Medium::log, 1s, 24h).size() < 24 * 60 + 5);
}

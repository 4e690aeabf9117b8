#include "observe/profile/profile_plan.hpp"

#include <string>

#include "support/catch.hpp"

using namespace hortator;
using observe::ProfileAction;

namespace {

// One character per step: - none, w warm-up, r recorded, R recorded and last of its cycle.
std::string actions(const std::optional<ProfileSchedule>& schedule, int steps) {
  std::string characters;
  for (int step = 0; step < steps; ++step) {
    characters += "-wrR"[static_cast<int>(observe::profile_action(schedule, step))];
  }
  return characters;
}

}  // namespace

TEST_CASE("a schedule repeats its cycles") {
  CHECK(actions({}, 4) == "rrrr");
  CHECK(actions(ProfileSchedule{}, 3) == "RRR");
  CHECK(actions(ProfileSchedule{.wait = 1, .warmup = 1, .active = 3}, 11) == "-wrrR-wrrR-");
  CHECK(actions(ProfileSchedule{.wait = 1, .warmup = 2, .active = 1, .repeat = 2, .skip_first = 2}, 12) ==
        "---wwR-wwR--");
}

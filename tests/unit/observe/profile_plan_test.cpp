#include "observe/profile/profile_plan.hpp"

#include <hortator/error.hpp>
#include <string>

#include "observe/profile/recorder.hpp"
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

TEST_CASE("a profile has the activities of the CPU and of the kind of device, or those that were requested") {
  using Activity = torch::profiler::impl::ActivityType;
  using Activities = std::set<Activity>;
  constexpr machine::DeviceKind far{.type = c10::kPrivateUse1, .name = "far"};
  constexpr machine::DeviceKind xpu{.type = c10::kXPU, .name = "xpu", .activity = Activity::XPU};
  const auto& cuda = machine::known_kinds().front();
  const auto of = [](std::vector<ProfilerActivity> requested, const machine::DeviceKind* kind) {
    return observe::activities_of({.activities = std::move(requested)}, kind);
  };
  CHECK((of({}, nullptr) == Activities{Activity::CPU}));
  CHECK((of({}, &cuda) == Activities{Activity::CPU, Activity::CUDA}));
  CHECK((of({}, &xpu) == Activities{Activity::CPU, Activity::XPU}));
  CHECK((of({}, &far) == Activities{Activity::CPU, Activity::PrivateUse1}));
  for (const auto* kind : {&cuda, &xpu, &far}) {
    CHECK((of({ProfilerActivity::cpu}, kind) == Activities{Activity::CPU}));
    CHECK((of({ProfilerActivity::cuda}, kind) == Activities{kind->activity}));
    CHECK((of({ProfilerActivity::cuda, ProfilerActivity::cpu}, kind) == Activities{Activity::CPU, kind->activity}));
  }
  CHECK((of({ProfilerActivity::cpu}, nullptr) == Activities{Activity::CPU}));
  CHECK_THROWS_WITH(of({ProfilerActivity::cuda}, nullptr), ContainsSubstring("CUDA activities were requested"));
}

#include "step/schedule/schedule_pace.hpp"

#include "support/catch.hpp"

using namespace hortator;
using step::effect;
using step::inner_steps;
using step::pace_of;

namespace {

// Accelerate's rule, with its conditions in its order, one inner step after the other.
std::int64_t as_the_reference(const step::PaceChoice& choice, const step::StepCall& call) {
  if (!choice.with_optimizer) return 1;
  if (!call.gradients_synchronised) return 0;
  if (call.optimizer_was_skipped) return 0;
  const bool once = choice.split_batches || choice.rule == ScheduleStep::per_update;
  std::int64_t made = 0;
  for (int i = 0; i < (once ? 1 : choice.world); ++i) made += made < call.left ? 1 : 0;
  return made;
}

}  // namespace

TEST_CASE("a call advances by as many steps as in Accelerate, for every choice and call") {
  int linked_once = 0;
  for (const auto rule : {ScheduleStep::per_process, ScheduleStep::per_update}) {
    for (int bits = 0; bits < 16; ++bits) {
      for (int world = 1; world <= 5; ++world) {
        for (const std::int64_t left : {0, 1, 2, 3, 4, 5, 100}) {
          const step::PaceChoice choice{
              .rule = rule, .with_optimizer = (bits & 1) != 0, .split_batches = (bits & 2) != 0, .world = world};
          const step::StepCall call{
              .gradients_synchronised = (bits & 4) != 0, .optimizer_was_skipped = (bits & 8) != 0, .left = left};
          INFO("rule " << static_cast<int>(rule) << " bits " << bits << " world " << world << " left " << left);
          const auto made = inner_steps(pace_of(choice), call);
          CHECK(made == as_the_reference(choice, call));
          linked_once += made == 1 ? 1 : 0;
        }
      }
    }
  }
  CHECK(linked_once > 0);
  CHECK(inner_steps(pace_of({.world = 4}), {}) == 4);
}

TEST_CASE("effect() shows how a schedule advances and when its parts end") {
  const std::vector<step::Milestone> ends = {{"warm-up ends", 100}, {"the schedule ends", 1001}};
  CHECK(effect(pace_of({.world = 4}), ends) ==
        "each update advances 4 steps (per_process, 4 ranks): warm-up ends after update 25, the schedule ends after "
        "update 251");
  CHECK(effect(pace_of({.rule = ScheduleStep::per_update, .world = 4}), ends) ==
        "each update advances 1 step (per_update): warm-up ends after update 100, the schedule ends after update 1001");
  CHECK(effect(pace_of({.split_batches = true, .world = 4}), {}) == "each update advances 1 step (batches are split)");
  CHECK(effect(pace_of({.with_optimizer = false, .world = 4}), {{"nothing ends", 0}, {"warm-up ends", 3}}) ==
        "each call advances 1 step (whatever the optimizer does): warm-up ends after call 3");
}

// What the reference's prepared schedulers do within its training loops: how far they are after each micro-step, given
// which micro-steps synchronised gradients and which optimizer steps were skipped.
#include <torch/optim/sgd.h>

#include <fstream>
#include <hortator/schedules.hpp>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "train/course_schedule.hpp"

using namespace hortator;
using nlohmann::json;

namespace {

Schedule make_schedule(const json& one, torch::optim::Optimizer& optimizer) {
  if (one.at("kind") == "onecycle") return one_cycle(optimizer, {.max_lr = 0.1, .total_steps = one.at("total_steps")});
  return Schedule(optimizer, [](std::int64_t) { return 1.0; });
}

// One case: true when the schedule is where the reference's is after every micro-step.
bool follows_reference(const json& one) {
  torch::optim::SGD optimizer({at::ones({1}).requires_grad_()}, torch::optim::SGDOptions(0.1).momentum(0.9));
  auto schedule = make_schedule(one, optimizer);
  const auto& core = static_cast<const train::CourseSchedule&>(schedule.core());
  const auto sync = one.at("sync").get<std::string>();
  const auto skipped = one.value("skipped", std::string(sync.size(), '0'));
  std::size_t i = 0;
  schedule.core().attach({.session = std::make_shared<train::Session>(),
                          .pace = train::pace_of({.with_optimizer = one.value("step_with_optimizer", 1) == 1,
                                                  .split_batches = one.at("split") == 1,
                                                  .world = one.at("world")}),
                          .gradients_synchronised = [&] { return sync[i] == '1'; },
                          .optimizer_was_skipped = [&] { return skipped[i] == '1'; }});
  for (; i < sync.size(); ++i) {
    schedule.step();
    if (schedule.steps() != one.at("sched_last_epoch")[i] || core.step_count() != one.at("sched_step_count")[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("prepared schedules advance as the reference's") {
  std::ifstream file(GOLDEN_DIR "/accumulate.json");
  const json all = json::parse(file);
  std::map<std::string, int> checked;
  for (const auto& one : all.at("cases")) {
    INFO("case " << one.at("id") << ", " << one.at("kind"));
    CHECK(follows_reference(one));
    ++checked[one.at("kind").get<std::string>()];
  }
  for (const auto* kind : {"lambda", "onecycle", "not_linked", "scaler", "break"}) CHECK(checked[kind] > 0);
}

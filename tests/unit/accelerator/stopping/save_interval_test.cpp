// Intervals of checkpoints in steps and in time, with clocks that the tests move. Every rank has a clock of its own.
#include "accelerator/stopping/save_interval.hpp"
#include "accelerator/training/run_output.hpp"

#include "accelerator/training/training.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using namespace std::chrono_literals;
using accelerator::SaveInterval;
using test::Folder;
using test::Net;
namespace fs = std::filesystem;

namespace {

/// A training that saves where should_stop() does.
class TimedRun {
 public:
  /// `others`: how much the clocks of all but the main process move in each step.
  TimedRun(const fs::path& project, const CheckpointOptions& checkpoint, std::chrono::hours others = {})
      : accelerator({.project = {.dir = project, .automatic_checkpoint_naming = true}, .checkpoint = checkpoint}),
        others_(others),
        sgd_(net_->parameters(), 0.1),
        prepared_(accelerator.prepare(net_, sgd_)) {
    interval().set_clock([this] { return now_; });
  }
  SaveInterval& interval() const { return accelerator::Training::of(accelerator).output.save_interval(); }

  /// One step, after the clock of the main process has moved by `time`.
  void step_after(std::chrono::seconds time) {
    now_ += accelerator.is_main_process() ? time : others_;
    auto& [model, optimizer] = prepared_;
    accelerator.backward(model(at::ones({2, 3})).sum());
    optimizer.step();
    optimizer.zero_grad();
    CHECK_FALSE(accelerator.should_stop());
  }
  /// How many checkpoints the project has; the same on all ranks.
  std::size_t saves() const {
    accelerator.wait_for_everyone();
    const auto& project = accelerator::Training::of(accelerator).output.project();
    const auto found = project.checkpoints().size();
    accelerator.wait_for_everyone();
    return found;
  }

  Accelerator accelerator;

 private:
  SaveInterval::Clock::time_point now_;
  std::chrono::seconds others_;
  Net net_;
  torch::optim::SGD sgd_;
  decltype(std::declval<Accelerator&>().prepare(std::declval<Net&>(), std::declval<torch::optim::SGD&>())) prepared_;
};

}  // namespace

TEST_CASE("a checkpoint is due after a number of updates or a time, whichever comes first") {
  SaveInterval::Clock::time_point now;
  const auto interval = [&](std::int64_t updates, std::chrono::milliseconds time) {
    SaveInterval made(updates, time);
    made.set_clock([&] { return now; });
    return made;
  };
  auto never = interval(0, 0ms);
  auto steps = interval(3, 0ms);
  auto time = interval(0, 30s);
  auto both = interval(3, 30s);
  CHECK_FALSE(never.is_set());
  CHECK(steps.is_set());
  CHECK(time.is_set());
  const auto due = [&](std::int64_t updates) {
    CHECK_FALSE(never.is_due(updates));
    std::string names;
    if (steps.is_due(updates)) names += "steps ";
    if (time.is_due(updates)) names += "time ";
    if (both.is_due(updates)) names += "both ";
    return names;
  };
  CHECK(due(2) == "");
  CHECK(due(3) == "steps both ");
  now += 29999ms;
  CHECK(due(2) == "");
  now += 1ms;
  CHECK(due(2) == "time both ");
  CHECK(due(0) == "");  // nothing has changed
  for (auto* one : {&steps, &time, &both}) one->restart(2);
  CHECK(due(4) == "");
  CHECK(due(5) == "steps both ");
  now += 30s;
  CHECK(due(2) == "");
  CHECK(due(3) == "time both ");
}

TEST_CASE("should_stop() saves into the project by rank 0's clock, on all ranks at the same step") {
  const State state;
  const Folder folder(state, "save_interval");
  for (const auto others : {0h, 1000h}) {
    TimedRun run(folder.path() / std::to_string(others.count()), {.every = 30s}, others);
    run.step_after(20s);
    CHECK(run.saves() == 0);
    run.step_after(20s);
    CHECK(run.saves() == 1);
    run.step_after(29s);
    CHECK(run.saves() == 1);
    run.step_after(1s);
    CHECK(run.saves() == 2);
    CHECK_FALSE(run.accelerator.should_stop());  // without an update there is nothing new
    CHECK(run.saves() == 2);
  }
}

TEST_CASE("should_stop() saves into the project after a number of steps, and counts from the program's own saves") {
  const State state;
  const Folder folder(state, "save_interval");
  TimedRun run(folder.path(), {.every_steps = 3});
  for (int i = 0; i < 2; ++i) run.step_after(0s);
  CHECK(run.saves() == 0);
  run.accelerator.save_state();
  CHECK(run.saves() == 1);
  for (int i = 0; i < 2; ++i) run.step_after(0s);
  CHECK(run.saves() == 1);
  run.step_after(0s);
  CHECK(run.saves() == 2);
  run.accelerator.load_state();
  for (int i = 0; i < 2; ++i) run.step_after(0s);
  CHECK(run.saves() == 2);
}

TEST_CASE("an interval that is not positive is refused by the option's name") {
  CHECK_THROWS_WITH(Accelerator({.checkpoint = {.every_steps = -1}}), ContainsSubstring("checkpoint.every_steps = -1"));
  CHECK_THROWS_WITH(Accelerator({.memory_checkpoint = {.every = -5ms}}),
                    ContainsSubstring("memory_checkpoint.every = -5ms"));
  CHECK_THROWS_WITH(Accelerator({.local_checkpoint = {.every = -5ms}}),
                    ContainsSubstring("local_checkpoint.every = -5ms"));
}

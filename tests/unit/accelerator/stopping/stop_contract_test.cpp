#include <cstdlib>
#include <thread>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using namespace std::chrono_literals;
using test::Net;
using test::Rows;

namespace {

/// Sets the job's deadline to a number of seconds from now, for its lifetime.
class Deadline {
 public:
  explicit Deadline(int seconds) {
    setenv("HORTATOR_DEADLINE", std::to_string(std::time(nullptr) + seconds).c_str(), 1);
  }
  ~Deadline() { unsetenv("HORTATOR_DEADLINE"); }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
};

struct Steps {
  std::int64_t until_stop = 0;
  std::int64_t saves = 0;
  std::int64_t position = 0;
};

// Trains until should_stop() is true, at most an epoch.
Steps run_epoch(Accelerator& accelerator, std::optional<std::chrono::milliseconds> every = {}) {
  Net net;
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer, loader] = accelerator.prepare(net, sgd, data_loader(Rows{24}, {.batch_size = 1}));
  Steps steps;
  for (auto& batch : loader) {
    auto micro_step = accelerator.accumulate(model);
    if (every) std::this_thread::sleep_for(2 * *every);  // so that a save is due when gradients are reduced
    accelerator.backward(at::mse_loss(model(batch.data), batch.target));
    optimizer.step();
    optimizer.zero_grad();
    ++steps.until_stop;
    if (every && accelerator.save_state_every(*every)) ++steps.saves;
    if (accelerator.should_stop()) break;
  }
  steps.position = loader.position();
  accelerator.free_memory();  // the model is destroyed at the end of this function
  return steps;
}

}  // namespace

TEST_CASE("a run near its deadline saves and stops, on all ranks at the same step") {
  const Deadline soon(30);
  test::Folder folder(State(), "stop");
  Accelerator accelerator({.project = {.dir = folder.path()}});
  const auto steps = run_epoch(accelerator);
  CHECK(steps.until_stop == 1);
  CHECK(accelerator.has_checkpoint());
  CHECK(accelerator.should_stop());  // and stays true
  REQUIRE(accelerator.time_left().has_value());
  CHECK(*accelerator.time_left() <= 30s);
  CHECK(*accelerator.time_left() > 10s);
}

TEST_CASE("a job that is warned late keeps running until then") {
  const Deadline soon(30);
  setenv("HORTATOR_STOP_MARGIN", "5s", 1);
  test::Folder folder(State(), "stop_late");
  Accelerator accelerator({.project = {.dir = folder.path()}});
  unsetenv("HORTATOR_STOP_MARGIN");
  CHECK(run_epoch(accelerator).until_stop > 1);
  CHECK_FALSE(accelerator.should_stop());
}

TEST_CASE("a run neither stops nor saves within gradient accumulation") {
  const Deadline soon(30);
  test::Folder folder(State(), "stop_between");
  Accelerator accelerator({.gradient_accumulation_steps = 3, .project = {.dir = folder.path()}});
  const auto steps = run_epoch(accelerator, 1ms);
  CHECK(steps.until_stop == 3);
  CHECK(steps.position == 3 * accelerator.num_processes());
}

TEST_CASE("a run with enough time does not stop; without a deadline time_left is empty") {
  test::Folder folder(State(), "no_stop");
  {
    const Deadline late(7200);
    Accelerator accelerator({.project = {.dir = folder.path()}});
    CHECK(run_epoch(accelerator).until_stop == 24 / accelerator.num_processes());
    CHECK_FALSE(accelerator.has_checkpoint());
    CHECK(*accelerator.time_left() > 7000s);
  }
  Accelerator accelerator({.project = {.dir = folder.path()}});
  CHECK_FALSE(accelerator.time_left().has_value());
  CHECK_FALSE(accelerator.should_stop());
}

TEST_CASE("a loop without gradients is stopped as well") {
  const Deadline soon(30);
  test::Folder folder(State(), "stop_plain");
  Accelerator accelerator({.project = {.dir = folder.path()}});
  CHECK(accelerator.should_stop());
  CHECK(accelerator.has_checkpoint());
}

TEST_CASE("rank 0's clock decides when all ranks save") {
  test::Folder folder(State(), "save_every");
  Accelerator accelerator({.project = {.dir = folder.path(), .automatic_checkpoint_naming = true}});
  const auto steps = run_epoch(accelerator, 1ms);
  CHECK(steps.until_stop == 24 / accelerator.num_processes());
  // The first request may come after the first step's reduction.
  CHECK(steps.saves >= steps.until_stop - 1);
  CHECK_FALSE(accelerator.save_state_every(1h).has_value());
  CHECK_THROWS_WITH(accelerator.save_state_every(0ms), ContainsSubstring("not positive"));
  // If ranks request different intervals, rank 0's applies.
  std::this_thread::sleep_for(5ms);
  CHECK(accelerator.save_state_every(accelerator.is_main_process() ? 1ms : 3'600'000ms).has_value());
}

TEST_CASE("the suggested save interval follows from the cost of a save") {
  test::Folder folder(State(), "interval");
  Accelerator accelerator({.project = {.dir = folder.path()}});
  CHECK_THROWS_WITH(accelerator.suggested_save_interval(24h), ContainsSubstring("before the first save_state()"));
  accelerator.save_state();
  const auto suggested = accelerator.suggested_save_interval(24h);
  CHECK(suggested >= 1s);
  CHECK(accelerator.reduce(at::tensor(static_cast<double>(suggested.count())), Reduce::max).item<double>() ==
        static_cast<double>(suggested.count()));
}

TEST_CASE("within LocalSGD a run stops after a step that has averaged, and its replicas are equal then") {
  const Deadline soon(30);
  test::Folder folder(State(), "stop_local");
  Accelerator accelerator({.project = {.dir = folder.path()}});
  Net net;
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  std::vector<bool> stopped;
  {
    LocalSGD local_sgd(accelerator, model, {.steps = 2});
    for (int step = 0; step < 2; ++step) {
      accelerator.backward(model(at::full({2, 3}, accelerator.process_index() + 1.0)).sum());
      optimizer.step();
      optimizer.zero_grad();
      local_sgd.step();
      stopped.push_back(accelerator.should_stop());
    }
  }
  const bool at_once = accelerator.num_processes() == 1;
  CHECK(stopped == std::vector<bool>{at_once, true});
  CHECK(accelerator.has_checkpoint());
}

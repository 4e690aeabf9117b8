// The scale of fp16's losses, with what drops gradients, models and optimizers under way.
#include <cmath>
#include <limits>
#include <stdexcept>

#include "../accelerator/fixtures.hpp"
#include "support/catch.hpp"
#include "support/written.hpp"
#include "weight.hpp"

using namespace hortator;
using test::Weight;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

AcceleratorOptions scaled(bool late) {
  return {.mixed_precision = Precision::fp16, .grad_scaler = {.init_scale = 1024, .late_verdict = late}, .cpu = true};
}

struct ScaledRun : test::WeightRun<torch::optim::AdamW> {
  explicit ScaledRun(bool late) : WeightRun(scaled(late), 1e-2) {}
};

std::string one_step(ScaledRun& run, bool past_the_handle, bool clears_by_handle) {
  return test::written_to(STDERR_FILENO, [&] {
    for (int i = 0; i < 2; ++i) {
      run.accelerator.backward(run.model(1).sum());
      past_the_handle ? void(run.own.step()) : run.optimizer.step();
      clears_by_handle ? run.optimizer.zero_grad() : run.own.zero_grad();
    }
  });
}

}  // namespace

TEST_CASE("a step of the optimizer itself, with gradients that are still scaled, is reported") {
  const State all;
  for (const bool late : {false, true}) {
    for (const bool by_handle : {true, false}) {
      ScaledRun run(late);
      const auto text = one_step(run, /*past_the_handle=*/true, by_handle);
      CHECK((text.find("have changed while their gradients were still multiplied by the scale") != std::string::npos) ==
            all.is_main_process());
      ScaledRun good(late);
      CHECK(one_step(good, /*past_the_handle=*/false, by_handle).find("still multiplied") == std::string::npos);
    }
  }
}

TEST_CASE("an overflow that clipping has seen counts for the next step, and gradients are unscaled once") {
  ScaledRun run(/*late=*/false);
  run.step(1);
  const double before = run.weight();
  run.accelerator.backward(run.model(run.accelerator.is_last_process() ? infinity : 1).sum());
  run.accelerator.clip_grad_norm_(run.net.parameters(), 1);
  run.optimizer.zero_grad();  // the step is left out, as after an exception
  run.step(1);
  CHECK(run.optimizer.step_was_skipped());
  CHECK(run.accelerator.loss_scale().scale == 512);
  CHECK(run.weight() == before);
  run.accelerator.backward(run.model(2).sum());
  run.accelerator.clip_grad_norm_(run.net.parameters(), 100);
  CHECK(run.net.w.grad().item<double>() == 2);
  run.accelerator.backward(run.model(3).sum());  // to the unscaled gradient of before
  CHECK(run.accelerator.clip_grad_norm_(run.net.parameters(), 100).item<double>() == 5);
  run.optimizer.step();
  CHECK_FALSE(run.optimizer.step_was_skipped());
}

TEST_CASE("free_memory() leaves the next model a scale that is right") {
  for (const bool late : {false, true}) {
    ScaledRun run(late);
    run.step(infinity);  // with late verdicts it is under way
    run.accelerator.backward(run.model(infinity).sum());
    run.accelerator.clip_grad_norm_(run.net.parameters(), 1);  // an overflow without a step
    run.accelerator.free_memory();
    CHECK(run.accelerator.loss_scale().scale == 512);
    Weight net;
    torch::optim::SGD sgd(net.parameters(), 1.0);
    auto [model, optimizer] = run.accelerator.prepare(net, sgd);
    run.accelerator.backward(model(2).sum());
    CHECK(net.w.grad().item<double>() == 1024);
    optimizer.step();
    run.accelerator.end_training();
    CHECK_FALSE(optimizer.step_was_skipped());
    CHECK(net.w.item<double>() == -2);
    CHECK(run.accelerator.loss_scale().scale == 512);
  }
}

TEST_CASE("a load after some updates replaces scale and moments, also while a verdict is under way") {
  const State all;
  for (const bool late : {false, true}) {
    const test::Folder folder(all, "scaler_load");
    ScaledRun run(late);
    run.step(1);
    run.accelerator.save_state(folder.path());
    run.accelerator.wait_for_checkpoint();
    const auto next_step = [](ScaledRun& one) {
      one.step(3);
      one.accelerator.end_training();
      return std::tuple(one.weight(), one.accelerator.loss_scale().scale, one.accelerator.loss_scale().growth_tracker);
    };
    run.step(2);
    run.step(infinity);
    run.accelerator.load_state(folder.path());
    CHECK(run.accelerator.loss_scale().scale == 1024);
    ScaledRun fresh(late);
    fresh.accelerator.load_state(folder.path());
    CHECK(next_step(run) == next_step(fresh));
  }
}

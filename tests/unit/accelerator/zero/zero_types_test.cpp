// ZeRO's stages in all precisions.
#include <torch/optim/sgd.h>

#include <limits>

#include "support/catch.hpp"
#include "unit/accelerator/zero/zero_course.hpp"

using namespace hortator;
using test::are_close;
using test::are_equal;
using test::batch;
using test::copies_of;
using test::distinct;
using test::MakeOptimizer;
using test::options_of;
using test::Outcome;
using test::Shardable;
using test::train;
using test::TrainingPlan;

TEST_CASE("50 steps in fp32 stay within 1e-6, in bf16 within 5e-3, with any communication type") {
  const TrainingPlan plan{.steps = 50, .max_norm = 1};
  const auto exact = train({.stage = 0}, plan);
  CHECK(are_close(train({.stage = 2}, plan).parameters, exact.parameters, 1e-6));
  auto options = options_of({.stage = 0}, plan);
  options.mixed_precision = Precision::bf16;
  const auto expected = train(options, plan);
  for (const int stage : {1, 2, 3}) {
    options.zero.stage = stage;
    CHECK(are_close(train(options, plan).parameters, expected.parameters, 5e-3));
  }
  for (const auto hook : {DDPCommunicationHookType::bf16, DDPCommunicationHookType::fp16}) {
    auto rounded = options_of({.stage = 0}, plan);
    rounded.ddp.comm_hook = hook;
    const auto unsharded = train(rounded, plan);
    rounded.zero.stage = 2;
    CHECK(are_close(train(rounded, plan).parameters, unsharded.parameters, 2e-2));
  }
}

TEST_CASE("bf16 parameters are stepped in fp32, which small steps need") {
  const MakeOptimizer slow = [](Shardable& net) { return std::make_unique<torch::optim::SGD>(distinct(*net), 1e-3); };
  const TrainingPlan plan{.steps = 120, .make_optimizer = slow, .type = at::kBFloat16};
  TrainingPlan fp32_plan = plan;
  fp32_plan.type = at::kFloat;
  const auto exact = train({.stage = 0}, fp32_plan);
  const auto distance = [&](const Outcome& outcome) {
    double sum = 0;
    for (std::size_t i = 0; i < exact.parameters.size(); ++i)
      sum += (outcome.parameters[i].to(at::kFloat) - exact.parameters[i]).abs().sum().item<double>();
    return sum;
  };
  const auto without = distance(train({.stage = 1, .fp32_masters = false}, plan));
  for (const int stage : {1, 2}) CHECK(distance(train({.stage = stage}, plan)) < 0.8 * without);
  CHECK(are_equal(train({.stage = 1, .fp32_masters = false}, plan).parameters, train({.stage = 0}, plan).parameters));
}

TEST_CASE("losses in fp16 are scaled; a step with an overflow on one rank is skipped on all") {
  const auto run = [](int stage, std::vector<bool>& skipped) {
    Accelerator accelerator({.mixed_precision = Precision::fp16,
                             .grad_scaler = {.init_scale = 256, .growth_interval = 2},
                             .ddp = {.bucket_cap_mb = 3e-3},
                             .zero = {.stage = stage}});
    Shardable net;
    auto adamw = test::make_adamw(net);
    auto [model, optimizer] = accelerator.prepare(net, *adamw);
    for (int step = 0; step < 5; ++step) {
      auto loss = model(batch(accelerator, step)).square().mean();
      if (step == 2 && accelerator.is_last_process()) loss = loss * std::numeric_limits<float>::infinity();
      accelerator.backward(loss);
      accelerator.clip_grad_norm_(model.parameters(), 0.1);
      optimizer.step();
      skipped.push_back(optimizer.step_was_skipped());
      optimizer.zero_grad();
    }
    accelerator.wait_for_everyone();
    return copies_of(*net);
  };
  std::vector<bool> expected_skips;
  const auto expected = run(0, expected_skips);
  CHECK(expected_skips == std::vector<bool>{false, false, true, false, false});
  for (const int stage : {1, 2}) {
    std::vector<bool> skips;
    CHECK(are_close(run(stage, skips), expected, 1e-4));
    CHECK(skips == expected_skips);
  }
}

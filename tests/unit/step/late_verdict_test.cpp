#include "step/precision/late_verdict.hpp"

#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <hortator/error.hpp>
#include <limits>

#include "step/capture/step_recording.hpp"
#include "step/gradients/scaled_gradients.hpp"
#include "step/optimizer/fused_step.hpp"
#include "step/optimizer/optimizer_parameters.hpp"
#include "step/step_ahead.hpp"
#include "support/catch.hpp"
#include "unit/parallel/reducer_fixture.hpp"

using namespace hortator;
using step::LateVerdict;
using test::all_are;
using test::parameter;

namespace {

constexpr double endless = std::numeric_limits<double>::infinity();

/// One optimizer's gradients with a scaler with late verdicts.
struct LateScaling {
  explicit LateScaling(GradScalerOptions options) : scaler(late(options), fixture.communicator, at::kCPU) {}
  static GradScalerOptions late(GradScalerOptions options) {
    options.late_verdict = true;
    return options;
  }

  void backward(double mine) {
    gradients.expect_scaled();
    scaler.scaled((weight * mine).sum()).backward();
  }
  std::shared_ptr<LateVerdict> end_step() {
    auto verdict = gradients.end_step();
    scaler.expect(verdict);
    weight.mutable_grad().reset();
    return verdict;
  }
  double scale_there() const { return scaler.scale_on_device().item<double>(); }

  test::ReducerFixture fixture;
  step::GradScaler scaler;
  at::Tensor weight = parameter({3});
  step::ScaledGradients gradients{[this] { return std::vector{weight}; }, scaler};
};

std::shared_ptr<LateVerdict> verdict_of(double not_finite) {
  auto verdict = std::make_shared<LateVerdict>(at::kCPU);
  verdict->write(at::full({1}, not_finite, at::kFloat));
  verdict->expect();
  return verdict;
}

}  // namespace

TEST_CASE("late verdicts: the device's scale updates at once, the host's on reading; both equal torch's") {
  LateScaling s({.init_scale = 1025.3, .growth_factor = 1.7, .backoff_factor = 0.4, .growth_interval = 3});
  step::GradScaler exact({.init_scale = 1025.3, .growth_factor = 1.7, .backoff_factor = 0.4, .growth_interval = 3},
                         s.fixture.communicator, at::kCPU);
  LossScale before = exact.now();
  for (int step = 0; step < 40; ++step) {
    const bool overflows = step % 7 == 2 && s.fixture.rank == s.fixture.size - 1;
    s.backward(overflows ? endless : 2);
    const auto verdict = s.end_step();
    exact.overflowed(at::full({1}, overflows ? 1.0 : 0.0, at::kFloat));
    CHECK(static_cast<float>(s.scale_there()) == exact.now().scale);
    CHECK(s.scaler.now() == before);
    CHECK(s.scaler.apply_verdict(verdict) == (step % 7 == 2));
    CHECK(s.scaler.now() == exact.now());
    before = exact.now();
  }
}

TEST_CASE("late verdicts: accumulated gradients follow changes of the scale") {
  LateScaling s({.init_scale = 4, .growth_interval = 1});
  auto other = parameter({3});
  step::ScaledGradients quick([&] { return std::vector{other}; }, s.scaler);
  s.backward(1);
  quick.expect_scaled();
  s.scaler.expect(quick.end_step());  // the scale is 8 now
  CHECK(s.scale_there() == 8);
  CHECK(s.scaler.now().scale == 4);
  s.backward(1);
  s.gradients.unscale();  // as clipping a micro-step does
  CHECK(all_are(s.weight.grad(), 2));
  s.backward(1);
  s.gradients.unscale();
  CHECK(all_are(s.weight.grad(), 3));
  s.weight.mutable_grad().reset();
  (s.weight * 5).sum().backward();  // not scaled
  const auto verdict = s.gradients.end_step();
  CHECK(all_are(s.weight.grad(), 5));
  CHECK_FALSE(s.scaler.apply_verdict(verdict));
}

TEST_CASE("late verdicts are applied in their order") {
  LateScaling s({.init_scale = 4, .growth_interval = 1});
  std::vector<std::shared_ptr<LateVerdict>> all;
  for (const double found : {0.0, 1.0, 0.0}) {
    all.push_back(std::make_shared<LateVerdict>(at::kCPU));
    s.scaler.overflowed_later(at::full({1}, found, at::kFloat), *all.back());
    s.scaler.expect(all.back());
  }
  CHECK(s.scaler.apply_verdict(all[1]));
  CHECK(s.scaler.now().scale == 4);
  CHECK_FALSE(s.scaler.apply_verdict(all[0]));
  CHECK(s.scaler.now().scale == 4);
  s.scaler.apply_verdicts();
  CHECK(s.scaler.now().scale == 8);
}

TEST_CASE("a step with an overflow verdict changes nothing, and its count is taken back") {
  const test::ReducerFixture fixture;
  for (const bool skipped : {true, false}) {
    auto weight = parameter({3});
    const auto before = weight.detach().clone();
    torch::optim::AdamW adamw(std::vector<at::Tensor>{weight}, 1e-1);
    weight.mutable_grad() = at::ones({3});
    step::StepAhead ahead(verdict_of(skipped ? 1 : 0));
    REQUIRE(step::fused_step(adamw, {.ahead = &ahead}));
    CHECK(at::equal(weight, before) == skipped);
    if (skipped) ahead.take_back();
    const auto& state =
        static_cast<const torch::optim::AdamWParamState&>(*adamw.state().at(weight.unsafeGetTensorImpl()));
    CHECK(state.step() == (skipped ? 0 : 1));
  }
}

TEST_CASE("SGD whose first step is skipped initialises its momentum in the next step") {
  const test::ReducerFixture fixture;
  std::vector<at::Tensor> results;
  for (const bool skips_first : {true, false}) {
    auto weight = at::ones({3}).requires_grad_();
    torch::optim::SGD sgd({weight}, torch::optim::SGDOptions(1e-1).momentum(0.9).dampening(0.5));
    weight.mutable_grad() = at::full({3}, 2.0);
    if (skips_first) {
      step::StepAhead ahead(verdict_of(1));
      REQUIRE(step::fused_step(sgd, {.ahead = &ahead}));
      ahead.take_back();
      CHECK(sgd.state().empty());
    }
    step::StepAhead ahead(verdict_of(0));
    REQUIRE(step::fused_step(sgd, {.ahead = &ahead}));
    results.push_back(weight.detach());
  }
  CHECK(at::equal(results[0], results[1]));
}

TEST_CASE("a skipped recorded step is taken back after its replay") {
  const test::ReducerFixture fixture;
  auto weight = parameter({3});
  weight.mutable_grad() = at::ones({3});
  torch::optim::AdamW adamw(std::vector<at::Tensor>{weight}, 1e-2);
  REQUIRE(step::fused_step(adamw));
  step::StepRecording recording(at::kCPU);
  step::StepAhead ahead(verdict_of(0));
  REQUIRE(step::fused_step(adamw, {.recording = &recording, .ahead = &ahead}));
  const auto steps = [&] {
    return static_cast<torch::optim::AdamWParamState&>(*adamw.state().at(weight.unsafeGetTensorImpl())).step();
  };
  for (int replay = 0; replay < 3; ++replay) {
    recording.begin_replay();
    CHECK(steps() == 2);
    ahead.take_back();
    CHECK(steps() == 1);
  }
}

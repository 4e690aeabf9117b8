#include "step/capture/step_recording.hpp"

#include <ATen/Context.h>
#include <ATen/ops/ones.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <hortator/error.hpp>

#include "step/accelerator_session.hpp"
#include "step/optimizer/fused_step.hpp"
#include "step/optimizer/optimizer_state.hpp"
#include "support/called_operators.hpp"
#include "support/catch.hpp"

using namespace hortator;
using step::StepRecording;

namespace {

at::Tensor weight_with_gradient() {
  auto weight = at::ones({3}).requires_grad_();
  weight.mutable_grad() = at::ones({3});
  return weight;
}

/// Uses only deterministic algorithms while it lives.
struct Deterministic {
  Deterministic() { at::globalContext().setDeterministicAlgorithms(true, false); }
  ~Deterministic() { at::globalContext().setDeterministicAlgorithms(false, false); }
};

}  // namespace

TEST_CASE("a recording's numbers are not written by operators that would be recorded") {
  const Deterministic algorithms;
  REQUIRE(at::globalContext().deterministicFillUninitializedMemory());
  StepRecording recording;
  const test::CalledOperators operators;
  const auto number = recording.number(at::kCPU, [] { return 1.0; });
  CHECK(operators.names() == std::vector<std::string>{"aten::empty"});
  CHECK(at::globalContext().deterministicFillUninitializedMemory());
}

TEST_CASE("each replay runs a recording's work in order, with current numbers") {
  StepRecording recording;
  std::string done;
  double rate = 1;
  recording.after_replay([&] { done += "c"; });
  recording.before_replay([&] { done += "a"; });
  const auto number = recording.number(at::kCPU, [&] { return done += "n", rate; });
  recording.before_replay([&] { done += "b"; });
  for (rate = 0.5; rate < 3; rate += 1) {
    done.clear();
    recording.begin_replay();
    CHECK(done == "anb");
    CHECK(number.item<float>() == rate);
    recording.end_replay();
    CHECK(done == "anbc");
  }
  CHECK(recording.is_good());
  bool holds = true;
  recording.require([] { return true; });
  recording.require([&] { return holds; });
  CHECK(recording.is_good());
  holds = false;
  CHECK_FALSE(recording.is_good());
}

TEST_CASE("recorded Adam: each replay counts a step; loaded moments, options and moved weights invalidate it") {
  auto weight = weight_with_gradient();
  torch::optim::AdamW adamw(std::vector<at::Tensor>{weight}, 1e-2);
  StepRecording early;
  CHECK_THROWS_WITH(step::fused_step(adamw, {.recording = &early}),
                    ContainsSubstring("its first gradient in a step that is recorded"));
  REQUIRE(step::fused_step(adamw));
  const auto steps = [&] {
    return static_cast<torch::optim::AdamWParamState&>(*adamw.state().at(weight.unsafeGetTensorImpl())).step();
  };
  StepRecording recording;
  REQUIRE(step::fused_step(adamw, {.recording = &recording}));
  CHECK(steps() == 1);
  recording.begin_replay();
  recording.begin_replay();
  CHECK(steps() == 3);

  auto& options = static_cast<torch::optim::AdamWOptions&>(adamw.param_groups()[0].options());
  options.lr(5);
  CHECK(recording.is_good());
  options.weight_decay(0.5);
  CHECK_FALSE(recording.is_good());

  StepRecording second;
  REQUIRE(step::fused_step(adamw, {.recording = &second}));
  CHECK(second.is_good());
  step::load_optimizer(adamw, {}, step::save_optimizer(adamw, {}));
  CHECK_FALSE(second.is_good());

  StepRecording third;
  REQUIRE(step::fused_step(adamw, {.recording = &third}));
  CHECK(third.is_good());
  weight.set_data(at::ones({3}));
  CHECK_FALSE(third.is_good());
}

TEST_CASE("recorded SGD: momentum must exist, and stay the same tensor") {
  auto weight = weight_with_gradient();
  torch::optim::SGD sgd(std::vector<at::Tensor>{weight}, torch::optim::SGDOptions(1e-2).momentum(0.9));
  StepRecording early;
  CHECK_THROWS_AS(step::fused_step(sgd, {.recording = &early}), UsageError);
  REQUIRE(step::fused_step(sgd));
  StepRecording recording;
  REQUIRE(step::fused_step(sgd, {.recording = &recording}));
  CHECK(recording.is_good());
  sgd.state().clear();
  CHECK_FALSE(recording.is_good());
}

TEST_CASE("host-only work throws while a step is recorded") {
  step::AcceleratorSession session;
  CHECK_NOTHROW(session.refuse_in_recording("log() was called"));
  StepRecording recording;
  session.record_into(&recording);
  CHECK_THROWS_WITH(session.refuse_in_recording("log() was called"),
                    ContainsSubstring("log() was called within a step that is recorded"));
}

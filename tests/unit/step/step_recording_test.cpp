#include "step/capture/step_recording.hpp"

#include <ATen/ops/ones.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <hortator/error.hpp>
#include <hortator/training/recompute.hpp>

#include "machine/device/recording.hpp"
#include "step/accelerator_session.hpp"
#include "step/capture/recorded_gradients.hpp"
#include "step/moments/optimizer_state.hpp"
#include "step/optimizer/fused_step.hpp"
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

}  // namespace

TEST_CASE(
    "a recording's numbers lie in memory of before, and no operator that would be recorded allocates or writes them") {
  StepRecording recording(at::kCPU);
  const test::CalledOperators operators;
  const auto rate = recording.number(at::kCPU, [] { return 1.0; });
  const auto count = recording.number(at::kCPU, [] { return 2.0; });
  for (const auto& name : operators.names()) {
    INFO(name);
    CHECK((name == "aten::select" || name == "aten::as_strided"));
  }
  CHECK(rate.storage().is_alias_of(count.storage()));
  CHECK_FALSE(rate.const_data_ptr() == count.const_data_ptr());
  recording.begin_replay();
  CHECK(rate.item<float>() == 1);
  CHECK(count.item<float>() == 2);
}

TEST_CASE("a recording has numbers for one device, and not without end") {
  StepRecording recording(at::kCPU);
  CHECK_THROWS_WITH(recording.number(at::kMeta, [] { return 1.0; }),
                    ContainsSubstring("recorded on cpu updates parameters on meta"));
  for (int i = 0; i < StepRecording::max_numbers; ++i) recording.number(at::kCPU, [] { return 1.0; });
  CHECK_THROWS_WITH(recording.number(at::kCPU, [] { return 1.0; }), ContainsSubstring("more than 4096 numbers"));
}

TEST_CASE("a recording that adds to gradients is valid as long as they are in their memory") {
  auto weight = weight_with_gradient();
  const auto kept = weight.grad();
  const step::RecordedGradients gradients({weight});
  weight.mutable_grad().add_(1);  // what backward records
  StepRecording recording(at::kCPU);
  gradients.complete(recording);
  CHECK(recording.is_good());
  weight.mutable_grad() = kept.detach();  // another tensor, the same memory
  CHECK(recording.is_good());
  weight.mutable_grad().reset();
  CHECK_FALSE(recording.is_good());
  weight.mutable_grad() = at::ones({3});
  CHECK_FALSE(recording.is_good());
  gradients.put_back();
  CHECK(recording.is_good());
}

TEST_CASE("gradients that a recording makes are there after each replay, whatever the program removes") {
  auto weight = at::ones({3}).requires_grad_();
  const step::RecordedGradients gradients({weight});
  const auto made = at::ones({3});
  weight.mutable_grad() = made;
  StepRecording recording(at::kCPU);
  gradients.complete(recording);
  weight.mutable_grad().reset();
  CHECK(recording.is_good());
  recording.begin_replay();
  recording.end_replay();
  CHECK(weight.grad().is_same(made));
  gradients.put_back();
  CHECK_FALSE(weight.grad().defined());
}

TEST_CASE("what cannot be recorded says so") {
  CHECK_FALSE(machine::is_recording());
  const machine::RecordingMark mark;
  CHECK(machine::is_recording());
  const auto x = at::ones({2}).requires_grad_();
  CHECK_THROWS_WITH(recompute([](const at::Tensor& a) { return a * a; }, x),
                    ContainsSubstring("recompute was called within a step that is recorded"));
}

TEST_CASE("each replay runs a recording's work in order, with current numbers") {
  StepRecording recording(at::kCPU);
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
  StepRecording early(at::kCPU);
  CHECK_THROWS_WITH(step::fused_step(adamw, {.recording = &early}),
                    ContainsSubstring("its first gradient in a step that is recorded"));
  REQUIRE(step::fused_step(adamw));
  const auto steps = [&] {
    return static_cast<torch::optim::AdamWParamState&>(*adamw.state().at(weight.unsafeGetTensorImpl())).step();
  };
  StepRecording recording(at::kCPU);
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

  StepRecording second(at::kCPU);
  REQUIRE(step::fused_step(adamw, {.recording = &second}));
  CHECK(second.is_good());
  step::load_optimizer(adamw, {}, step::save_optimizer(adamw, {}));
  CHECK_FALSE(second.is_good());

  StepRecording third(at::kCPU);
  REQUIRE(step::fused_step(adamw, {.recording = &third}));
  CHECK(third.is_good());
  weight.set_data(at::ones({3}));
  CHECK_FALSE(third.is_good());
}

TEST_CASE("recorded SGD: momentum must exist, and stay the same tensor") {
  auto weight = weight_with_gradient();
  torch::optim::SGD sgd(std::vector<at::Tensor>{weight}, torch::optim::SGDOptions(1e-2).momentum(0.9));
  StepRecording early(at::kCPU);
  CHECK_THROWS_AS(step::fused_step(sgd, {.recording = &early}), UsageError);
  REQUIRE(step::fused_step(sgd));
  StepRecording recording(at::kCPU);
  REQUIRE(step::fused_step(sgd, {.recording = &recording}));
  CHECK(recording.is_good());
  sgd.state().clear();
  CHECK_FALSE(recording.is_good());
}

TEST_CASE("host-only work throws while a step is recorded") {
  step::AcceleratorSession session;
  CHECK_NOTHROW(session.refuse_in_recording("log() was called"));
  StepRecording recording(at::kCPU);
  session.record_into(&recording);
  CHECK_THROWS_WITH(session.refuse_in_recording("log() was called"),
                    ContainsSubstring("log() was called within a step that is recorded"));
}

// Captured steps where nothing can be recorded. Recording on a device is tested in tests/unit/gpu.
#include <hortator/training/capture.hpp>

#include "accelerator/training/recordable.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using accelerator::RecordingFacts;
using accelerator::why_not_recordable;

TEST_CASE("each obstacle to recording has its own reason") {
  machine::DeviceKind recording = {};
  recording.type = c10::kXPU;
  recording.records_steps = true;
  const RecordingFacts good{.kind = &recording};
  CHECK(why_not_recordable(good).empty());
  CHECK_THAT(why_not_recordable({}), ContainsSubstring("no CUDA device"));
  machine::DeviceKind plain = {};
  plain.type = c10::kPrivateUse1;
  plain.title = "Far";
  CHECK(why_not_recordable({.kind = &plain}) == "Far devices cannot record work");
  auto facts = good;
  facts.ranks = 4;
  CHECK_THAT(why_not_recordable(facts), ContainsSubstring("4 ranks"));
  facts = good;
  facts.waits_for_verdicts = true;
  CHECK_THAT(why_not_recordable(facts), ContainsSubstring("fp16") && ContainsSubstring("late_verdict"));
  facts = good;
  facts.is_protected = true;
  CHECK_THAT(why_not_recordable(facts), ContainsSubstring("protection.on_nonfinite"));
  facts = good;
  facts.is_sharded = true;
  CHECK_THAT(why_not_recordable(facts), ContainsSubstring("ZeRO"));
  facts = good;
  facts.is_paged = true;
  CHECK_THAT(why_not_recordable(facts), ContainsSubstring("cpu_offload"));
  facts = good;
  facts.is_reproducible = true;
  CHECK_THAT(why_not_recordable(facts), ContainsSubstring("reproducible"));
  facts = good;
  facts.records_operators = true;
  CHECK_THAT(why_not_recordable(facts), ContainsSubstring("record.operators"));
  facts = good;
  facts.accumulation_steps = 2;
  CHECK_THAT(why_not_recordable(facts), ContainsSubstring("accumulation"));
  facts = good;
  facts.has_fused_optimizers = false;
  CHECK_THAT(why_not_recordable(facts), ContainsSubstring("fused_optimizer"));
}

TEST_CASE("a captured step on the CPU trains as written, and reports why it is not recorded") {
  std::vector<at::Tensor> weights;
  for (const bool captured : {false, true}) {
    Accelerator accelerator({.cpu = true});
    set_seed(4);
    test::Net net;
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, schedule] =
        accelerator.prepare(net, adamw, linear_warmup(adamw, {.warmup_steps = 3, .total_steps = 20}));
    const auto body = [&, &model = model, &optimizer = optimizer, &schedule = schedule](const at::Tensor& x,
                                                                                        const at::Tensor& y) {
      const auto loss = at::mse_loss(model(x), y);
      accelerator.backward(loss);
      optimizer.step();
      schedule.step();
      optimizer.zero_grad();
      return loss;
    };
    auto step = accelerator.capture(body);
    for (int i = 0; i < 6; ++i) {
      const auto x = at::full({2, 3}, 0.1 * (i + accelerator.process_index()));
      const auto loss = captured ? step(x, x.sum(1, true)) : body(x, x.sum(1, true));
      CHECK((!captured || !loss.requires_grad()));
    }
    CHECK_FALSE(step.is_recorded());
    CHECK_THAT(captured ? step.why_not() : std::string("the device is no CUDA device"),
               ContainsSubstring("no CUDA device"));
    weights.push_back(net->out->weight.detach().clone());
  }
  CHECK(at::equal(weights[0], weights[1]));
}

TEST_CASE("a captured step checks the number of its arguments, and throws after its Accelerator was destroyed") {
  std::optional<CapturedStep> kept;
  {
    Accelerator accelerator({.cpu = true});
    auto nothing = accelerator.capture([] {});
    CHECK_FALSE(nothing().defined());
    auto two = accelerator.capture([](const at::Tensor& a, const at::Tensor& b) { return a + b; });
    CHECK(two(at::ones({}), at::ones({})).item<float>() == 2);
    CHECK_THROWS_WITH(two(at::ones({})), ContainsSubstring("A captured step of 2 tensors was called with 1"));
    CHECK_THROWS_WITH(accelerator.capture([] {}, {.warm_up = 0}), ContainsSubstring("warm_up = 0"));
    kept.emplace(accelerator.capture([] {}));
  }
  CHECK_THROWS_WITH((*kept)(), ContainsSubstring("captured step was used after its Accelerator"));
}

TEST_CASE("a captured step propagates the exceptions of its function") {
  Accelerator accelerator({.cpu = true});
  auto step = accelerator.capture([](const at::Tensor& a) { return at::mm(a, at::ones({7, 7})); });
  CHECK_THROWS_AS(step(at::ones({2, 2})), c10::Error);
}

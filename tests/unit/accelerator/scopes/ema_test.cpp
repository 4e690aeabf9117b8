// Averages of weights equal plain ones at any ZeRO stage, are exchanged for the model's, and resume exactly.
#include <ATen/ops/lerp.h>

#include <limits>
#include <stdexcept>

#include "support/catch.hpp"
#include "unit/accelerator/first_ranks.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;
using test::are_close;
using test::are_equal;
using test::batch;
using test::copies_of;
using test::FirstRanks;
using test::Shardable;

namespace {

const EmaOptions half_power{.decay = 0.9, .warm_up = EmaWarmUp::power};

struct Run {
  explicit Run(const ZeroConfig& zero, const EmaOptions& options = {.decay = 0.9}, AcceleratorOptions others = {},
               at::ScalarType type = at::kFloat)
      : accelerator(with(std::move(others), zero)), net(type), type(type), ema(accelerator, model, options) {}

  static AcceleratorOptions with(AcceleratorOptions options, const ZeroConfig& zero) {
    options.ddp.bucket_cap_mb = 3e-3;
    options.zero = zero;
    return options;
  }

  void step(int number) {
    accelerator.backward(model(batch(accelerator, number, type)).to(at::kFloat).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }
  /// The same batch on all ranks.
  void common_step(int number) {
    const auto data = at::sin(at::arange(6 * 7, at::kFloat).view({6, 7}) * 0.37 + number);
    accelerator.backward(model(data).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }
  std::vector<at::Tensor> averaged() {
    const auto scope = ema.use();
    accelerator.wait_for_everyone();
    auto copies = copies_of(*net);
    accelerator.wait_for_everyone();
    return copies;
  }

  Accelerator accelerator;
  Shardable net;
  at::ScalarType type;
  std::unique_ptr<torch::optim::Optimizer> plain = test::make_adamw(net);
  Model<Shardable> model = accelerator.prepare(net);
  Optimizer optimizer = accelerator.prepare(*plain);
  Ema ema;
};

/// Averages of `sums` and the model's weights now.
void average_plainly(std::vector<at::Tensor>& averages, const torch::nn::Module& net, double decay) {
  const auto now = copies_of(net);
  for (std::size_t i = 0; i < now.size(); ++i) averages[i].lerp_(now[i], 1 - decay);
}

}  // namespace

TEST_CASE("the decay grows as PyTorch's, diffusers' and timm's do") {
  const EmaOptions none{.decay = 0.99};
  CHECK(ema_decay(none, 1) == 0);
  CHECK(ema_decay(none, 2) == 0.99);
  const EmaOptions ratio{.decay = 0.99, .warm_up = EmaWarmUp::ratio};
  CHECK(ema_decay(ratio, 1) == 0);
  CHECK(ema_decay(ratio, 2) == Approx(2.0 / 11));
  CHECK(ema_decay(ratio, 2000) == 0.99);
  const EmaOptions power{.decay = 0.99, .warm_up = EmaWarmUp::power, .inv_gamma = 2, .power = 0.75, .min_decay = 0.3};
  CHECK(ema_decay(power, 2) == 0.3);
  CHECK(ema_decay(power, 11) == Approx(1 - std::pow(6.0, -0.75)));
  CHECK(ema_decay(power, 100000) == 0.99);
  CHECK(ema_decay({.decay = 0.5, .update_after_step = 10}, 11) == 0);
  CHECK(ema_decay({.decay = 0.5, .update_after_step = 10}, 12) == 0.5);
}

TEST_CASE("averages equal plain ones at every stage, and training continues with the weights that were trained") {
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    Run run({.stage = stage}, half_power);
    Run undisturbed({.stage = stage});
    auto expected = copies_of(*run.net);
    run.accelerator.wait_for_everyone();
    for (int step = 0; step < 8; ++step) {
      run.step(step);
      run.ema.update();
      run.accelerator.wait_for_everyone();
      average_plainly(expected, *run.net, ema_decay(half_power, step + 1));
      run.accelerator.wait_for_everyone();
      if (step % 3 == 1) CHECK(are_close(run.averaged(), expected, 1e-7));
      undisturbed.step(step);
    }
    CHECK(run.ema.updates() == 8);
    CHECK(run.ema.decay() == ema_decay(half_power, 8));
    run.accelerator.wait_for_everyone();
    CHECK(are_equal(copies_of(*run.net), copies_of(*undisturbed.net)));
    CHECK_FALSE(are_equal(run.averaged(), copies_of(*undisturbed.net)));
    run.accelerator.wait_for_everyone();
  }
}

TEST_CASE("averages of 16-bit weights are in fp32") {
  for (const int stage : {0, 2, 3}) {
    INFO("stage " << stage);
    Run run({.stage = stage}, {.decay = 0.999}, {}, at::kBFloat16);
    for (int step = 0; step < 30; ++step) {
      run.step(step);
      run.ema.update();
    }
    // Steps of a thousandth would vanish in bfloat16, so that the average would stay at the first weights.
    CHECK_FALSE(are_equal({run.averaged().front()}, {copies_of(*Shardable(at::kBFloat16)).front()}));
    run.accelerator.wait_for_everyone();
  }
}

TEST_CASE("averages resume exactly, at other stages and on other numbers of ranks") {
  const Accelerator all;
  const auto train = [&](const std::vector<std::pair<int, int>>& ranks_and_stages) {
    const test::Folder folder(all, "ema");
    std::vector<at::Tensor> averages;
    int step = 0;
    for (const auto& [wanted, stage] : ranks_and_stages) {
      const FirstRanks first(std::min(wanted, all.num_processes()));
      if (!first.is_in()) {
        step += 3;
        continue;
      }
      Run run({.stage = stage}, half_power, {.project = {.dir = folder.path()}, .communicator = first.handle()});
      if (run.accelerator.has_checkpoint()) run.accelerator.load_state();
      CHECK(run.ema.updates() == step);
      for (int i = 0; i < 3; ++i) {
        run.common_step(step++);
        run.ema.update();
      }
      run.accelerator.save_state();
      run.accelerator.wait_for_checkpoint();
      averages = run.averaged();
    }
    return averages;
  };
  const auto expected = train({{1, 0}, {1, 0}, {1, 0}, {1, 0}});
  const auto elastic = train({{4, 2}, {1, 0}, {3, 3}, {2, 1}});
  if (all.process_index() == 0) CHECK(are_close(elastic, expected, 1e-6));
  const auto same = train({{1, 3}, {1, 0}, {1, 1}, {1, 2}});
  if (all.process_index() == 0) CHECK(are_close(same, expected, 1e-7));
}

TEST_CASE("updates that were skipped or only accumulate are not averaged") {
  Run run({.stage = 1}, {.decay = 0.9},
          {.gradient_accumulation_steps = 2, .protection = {.on_nonfinite = OnNonfinite::skip}});
  for (int step = 0; step < 8; ++step) {
    auto micro_step = run.accelerator.accumulate(run.model);
    auto loss = run.model(batch(run.accelerator, step)).square().mean();
    if (step == 5) loss = loss * std::numeric_limits<double>::quiet_NaN();
    run.accelerator.backward(loss);
    run.optimizer.step();
    run.optimizer.zero_grad();
    run.ema.update();
  }
  CHECK(run.ema.updates() == 3);
  run.accelerator.wait_for_everyone();
}

TEST_CASE("what would spoil averages is refused") {
  const Accelerator all;
  const test::Folder folder(all, "ema_refused");
  Run run({.stage = 1}, {}, {.project = {.dir = folder.path()}});
  run.step(0);
  {
    const auto scope = run.ema.use();
    CHECK_THROWS_WITH(run.ema.update(), ContainsSubstring("Ema::update() was called while the model has"));
    CHECK_THROWS_WITH(run.ema.use(), ContainsSubstring("Ema::use() was called while the model has"));
    CHECK_THROWS_WITH(run.step(1), ContainsSubstring("optimizer.step() was called while a model has averaged weights"));
    CHECK_THROWS_WITH(run.accelerator.save_state(), ContainsSubstring("save_state() was called while the model has"));
  }
  run.step(2);
  CHECK_THROWS_WITH(Ema(run.accelerator, run.model),
                    ContainsSubstring("Checkpoints already hold averaged weights 'ema'"));
  CHECK_NOTHROW(Ema(run.accelerator, run.model, {.name = "slow"}));
  CHECK_THROWS_WITH(Ema(run.accelerator, run.model, {.decay = 1}), ContainsSubstring("EmaOptions::decay is 1"));
  CHECK_THROWS_WITH(Ema(run.accelerator, run.model, {.update_every = 0}), ContainsSubstring("update_every is 0"));
  CHECK_THROWS_WITH(Ema(run.accelerator, run.model, {.name = "a/b"}), ContainsSubstring("name is 'a/b'"));
  run.accelerator.wait_for_everyone();
}

TEST_CASE("a checkpoint without averages is refused, or they begin as the loaded model") {
  const Accelerator all;
  const test::Folder folder(all, "ema_absent");
  {
    Accelerator accelerator({.project = {.dir = folder.path()}});
    Shardable net;
    {
      const at::NoGradGuard no_grad;
      net->scale.fill_(3);
    }
    auto plain = test::make_adamw(net);
    auto [model, optimizer] = accelerator.prepare(net, *plain);
    accelerator.save_state();
    accelerator.wait_for_checkpoint();
  }
  Run run({.stage = 2}, {}, {.project = {.dir = folder.path()}});
  CHECK_THROWS_WITH(run.accelerator.load_state(), ContainsSubstring("it holds no averaged weights 'ema'"));
  run.accelerator.load_state({}, {.strict = false});
  CHECK(are_equal(run.averaged(), copies_of(*run.net)));
  CHECK(run.net->scale.item<double>() == 3);
  run.accelerator.wait_for_everyone();
}

TEST_CASE("an exception on all ranks ends Ema::use() with the trained weights, in 16 bits as well") {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const int stage : {0, 1, 2, 3}) {
      INFO("stage " << stage << ", " << type);
      Run run({.stage = stage}, {.decay = 0.9}, {}, type);
      for (int step = 0; step < 3; ++step) {
        run.step(step);
        run.ema.update();
      }
      run.accelerator.wait_for_everyone();
      const auto trained = copies_of(*run.net);
      run.accelerator.wait_for_everyone();
      try {
        const auto scope = run.ema.use();
        CHECK_FALSE(are_equal(copies_of(*run.net), trained));
        throw std::runtime_error("evaluation fails on all ranks");
      } catch (const std::runtime_error&) {
      }
      run.accelerator.wait_for_everyone();
      CHECK(are_equal(copies_of(*run.net), trained));
      run.accelerator.wait_for_everyone();
      CHECK_NOTHROW(run.step(3));
      run.accelerator.wait_for_everyone();
    }
  }
}

TEST_CASE("with late verdicts the step that was skipped is left out of the average, and no other") {
  AcceleratorOptions options{.mixed_precision = Precision::fp16};
  options.grad_scaler = {.init_scale = 64, .late_verdict = true};
  Run run({.stage = 0}, {.decay = 0.5}, options);
  std::vector<std::int64_t> updates;
  for (int step = 0; step < 5; ++step) {
    const double factor = step == 2 ? std::numeric_limits<double>::infinity() : 1;
    run.accelerator.backward(run.model(batch(run.accelerator, step)).to(at::kFloat).square().mean() * factor);
    run.optimizer.step();
    run.ema.update();
    run.optimizer.zero_grad();
    updates.push_back(run.ema.updates());
  }
  CHECK(updates == std::vector<std::int64_t>{1, 2, 2, 3, 4});
  run.accelerator.wait_for_everyone();
}

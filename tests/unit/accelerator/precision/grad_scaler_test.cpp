#include <mpi.h>

#include <cmath>
#include <limits>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Net;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

AcceleratorOptions fp16(GradScalerOptions scaler = {.init_scale = 1024}) {
  return {.mixed_precision = Precision::fp16, .grad_scaler = scaler, .cpu = true};
}

// y = w * times: the gradient of w is the factor of the loss.
struct Weight : torch::nn::Module {
  Weight() { w = register_parameter("w", at::zeros({1})); }
  at::Tensor forward(double times) { return w * times; }
  at::Tensor w;
};

double gradient(const Weight& net) { return net.w.grad().item<double>(); }

}  // namespace

TEST_CASE("an overflow on one rank: all ranks skip the step, lower the scale, and continue identically") {
  for (const double bad : {infinity, static_cast<double>(NAN), 1e38}) {  // the last: finite until it is scaled
    Accelerator accelerator(fp16());
    Weight net;
    torch::optim::SGD sgd(net.parameters(), 1.0);
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    accelerator.backward(model(accelerator.is_last_process() ? bad : 1).sum());
    optimizer.step();
    CHECK(optimizer.step_was_skipped());
    CHECK(accelerator.optimizer_step_was_skipped());
    CHECK(net.w.item<double>() == 0);
    CHECK(accelerator.loss_scale().scale == 512);
    optimizer.zero_grad();
    accelerator.backward(model(2).sum());
    CHECK(gradient(net) == 1024);
    optimizer.step();
    CHECK_FALSE(accelerator.optimizer_step_was_skipped());
    CHECK(net.w.item<double>() == -2);
  }
}

// Only the scaler's own message carries the verdict: under no_sync, gradients stay on their rank.
TEST_CASE("an overflow under no_sync, which no reduction spreads, skips the step on all ranks") {
  Accelerator accelerator(fp16());
  Weight net;
  torch::optim::SGD sgd(net.parameters(), 1.0);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  {
    auto local = accelerator.no_sync(model);
    accelerator.backward(model(accelerator.is_main_process() ? infinity : 1).sum());
  }
  optimizer.step();
  CHECK(optimizer.step_was_skipped());
  CHECK(accelerator.loss_scale().scale == 512);
}

TEST_CASE("an overflow in fp16 communication skips the step on all ranks") {
  auto options = fp16({.init_scale = 1024});
  options.ddp.comm_hook = DDPCommunicationHookType::fp16;
  Accelerator accelerator(options);
  if (accelerator.num_processes() == 1) return;  // nothing is sent
  Weight net;
  torch::optim::SGD sgd(net.parameters(), 1.0);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  const auto train_with = [&, &model = model, &optimizer = optimizer](double times) {
    accelerator.backward(model(times).sum());
    optimizer.step();
    optimizer.zero_grad();
    return !optimizer.step_was_skipped();
  };
  CHECK(train_with(1));
  // Divided by the number of ranks before it is sent, but still too large; this rank only.
  CHECK_FALSE(train_with(accelerator.is_main_process() ? 100.0 * accelerator.num_processes() : 1));
  CHECK(accelerator.loss_scale().scale == 512);
  CHECK(train_with(1));
  CHECK(net.w.item<double>() == Approx(-2).epsilon(1e-2));
}

TEST_CASE("of two optimizers, only the one that overflows is skipped, in whatever order they are unscaled") {
  for (const bool unscale_first : {false, true}) {
    Accelerator accelerator(fp16());
    Weight a;
    Weight b;
    torch::optim::SGD sgd_a(a.parameters(), 1.0);
    torch::optim::SGD sgd_b(b.parameters(), 1.0);
    auto [first, second, optimizer_a, optimizer_b] = accelerator.prepare(a, b, sgd_a, sgd_b);
    accelerator.backward(first(accelerator.is_last_process() ? infinity : 1).sum() + second(3).sum());
    if (unscale_first) accelerator.unscale_gradients();
    optimizer_a.step();
    optimizer_b.step();
    CHECK(optimizer_a.step_was_skipped());
    CHECK_FALSE(optimizer_b.step_was_skipped());
    CHECK(accelerator.optimizer_step_was_skipped());
    CHECK(a.w.item<double>() == 0);
    CHECK(b.w.item<double>() == -3);
    CHECK(accelerator.loss_scale() == LossScale{.scale = 512, .growth_tracker = 1});
  }
}

TEST_CASE("each optimizer's step updates the scale once") {
  Accelerator accelerator(fp16({.init_scale = 1024, .growth_interval = 2}));
  Weight a;
  Weight b;
  torch::optim::SGD sgd_a(a.parameters(), 1.0);
  torch::optim::SGD sgd_b(b.parameters(), 1.0);
  auto [first, second, optimizer_a, optimizer_b] = accelerator.prepare(a, b, sgd_a, sgd_b);
  accelerator.backward(first(1).sum() + second(1).sum());
  optimizer_a.step();
  CHECK(accelerator.loss_scale() == LossScale{.scale = 1024, .growth_tracker = 1});
  optimizer_b.step();
  CHECK(accelerator.loss_scale() == LossScale{.scale = 2048, .growth_tracker = 0});
  CHECK(b.w.item<double>() == -1);
}

// With two models, Accelerate fails at the second call.
TEST_CASE("clipping unscales only the gradients of its model, and returns their norm before clipping") {
  Accelerator accelerator(fp16());
  Weight a;
  Weight b;
  torch::optim::SGD sgd_a(a.parameters(), 1.0);
  torch::optim::SGD sgd_b(b.parameters(), 1.0);
  auto [first, second, optimizer_a, optimizer_b] = accelerator.prepare(a, b, sgd_a, sgd_b);
  accelerator.backward(first(3).sum() + second(4).sum());
  CHECK(accelerator.clip_grad_norm_(first.parameters(), 1.0).item<double>() == Approx(3));
  CHECK(gradient(b) == 4096);  // belongs to the other optimizer
  accelerator.unscale_gradients(optimizer_a);
  CHECK(gradient(b) == 4096);
  CHECK(accelerator.clip_grad_norm_(second.parameters(), 1.0).item<double>() == Approx(4));
  accelerator.clip_grad_value_(second.parameters(), 0.25);
  optimizer_a.step();
  optimizer_b.step();
  CHECK(a.w.item<double>() == Approx(-1));
  CHECK(b.w.item<double>() == Approx(-0.25));
}

TEST_CASE("accumulated gradients, of means or of sums and counts, are unscaled once, clipped in between or not") {
  for (const bool clip_each : {false, true}) {
    auto options = fp16({.init_scale = 1024, .growth_interval = 1});
    options.gradient_accumulation_steps = 2;
    Accelerator accelerator(options);
    Weight net;
    torch::optim::SGD sgd(net.parameters(), 1.0);
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    for (int i = 0; i < 8; ++i) {
      const auto micro_step = accelerator.accumulate(model);
      if (i < 4) {
        accelerator.backward(model(2).sum());
      } else {
        accelerator.backward(model(6).sum(), 3);
      }
      if (clip_each || accelerator.sync_gradients()) accelerator.clip_grad_norm_(model.parameters(), 1e9);
      optimizer.step();
      optimizer.zero_grad();
    }
    CHECK(net.w.item<double>() == -8);
    CHECK(accelerator.loss_scale().scale == 16384);
  }
}

TEST_CASE("clipping uses averaged gradients, in any precision and for any norm") {
  for (const auto precision : {Precision::no, Precision::bf16, Precision::fp16}) {
    Accelerator accelerator({.mixed_precision = precision, .cpu = true});
    torch::nn::Linear net(torch::nn::LinearOptions(2, 1).bias(false));
    torch::optim::SGD sgd(net->parameters(), 1.0);
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    const double mean_rank = (accelerator.num_processes() - 1) / 2.0;
    const auto input = at::tensor({3.0, -4.0}, at::kFloat).view({1, 2}) * (accelerator.process_index() + 1);
    model(input).sum().backward();  // plain backward: clipping waits for it, as step does
    for (const auto& [norm_type, norm] : {std::pair(2.0, 5.0), {1.0, 7.0}, {infinity, 4.0}}) {
      CHECK(accelerator.clip_grad_norm_(model.parameters(), 1e9, norm_type).item<double>() ==
            Approx(norm * (mean_rank + 1)));
    }
    accelerator.clip_grad_norm_(model.parameters(), 1.0);
    CHECK(at::allclose(net->weight.grad(), at::tensor({0.6, -0.8}, at::kFloat).view({1, 2}), 1e-3));
    optimizer.step();
  }
}

TEST_CASE("with error_if_nonfinite, a norm that is not finite on one rank is an error on all ranks") {
  Accelerator accelerator({.cpu = true});
  auto mine = at::zeros({1}).requires_grad_();
  mine.mutable_grad() = at::full({1}, accelerator.is_last_process() ? infinity : 1.0);
  CHECK_THROWS_WITH(accelerator.clip_grad_norm_({mine}, 1.0, 2, {.error_if_nonfinite = true}),
                    ContainsSubstring("norm of type 2 is inf"));
  CHECK_NOTHROW(accelerator.clip_grad_norm_({mine}, 1.0));
  CHECK_THROWS_WITH(accelerator.clip_grad_norm_({mine}, -1.0), ContainsSubstring("max_norm is -1"));
  CHECK_THROWS_WITH(accelerator.clip_grad_value_({mine}, -1.0), ContainsSubstring("clip_value is -1"));
}

TEST_CASE("losses are not scaled in fp32, in bf16, and in fp16 with the scaler disabled") {
  for (auto options : {AcceleratorOptions{.mixed_precision = Precision::no, .cpu = true},
                       AcceleratorOptions{.mixed_precision = Precision::bf16, .cpu = true}, fp16({.enabled = false})}) {
    Accelerator accelerator(options);
    Weight net;
    torch::optim::SGD sgd(net.parameters(), 1.0);
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    accelerator.backward(model(2).sum());
    CHECK(gradient(net) == 2);
    accelerator.unscale_gradients();
    accelerator.unscale_gradients(optimizer);
    CHECK(gradient(net) == 2);
    net.w.mutable_grad().fill_(infinity);
    optimizer.step();
    CHECK_FALSE(optimizer.step_was_skipped());
    CHECK(accelerator.loss_scale() == LossScale{});
  }
}

TEST_CASE("a parameter of two optimizers is refused, because it would be unscaled twice") {
  Accelerator accelerator(fp16());
  Weight net;
  torch::optim::SGD first(net.parameters(), 1.0);
  torch::optim::SGD second(net.parameters(), 1.0);
  auto optimizer = accelerator.prepare(first);
  CHECK_THROWS_WITH(accelerator.prepare(second), ContainsSubstring("a parameter in common"));
}

TEST_CASE("ranks without batches follow the verdicts of the others") {
  auto options = fp16({.init_scale = 1024, .growth_interval = 2});
  options.data.even_batches = false;
  Accelerator accelerator(options);
  Weight net;
  torch::optim::SGD sgd(net.parameters(), 1.0);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  {
    auto joined = accelerator.join_uneven_inputs({model});
    for (int step = 0; step <= 2 * accelerator.process_index(); ++step) {
      accelerator.backward(model(step == 1 ? infinity : 1).sum());
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  const auto scales = accelerator.gather(at::full({1}, accelerator.loss_scale().scale));
  CHECK(at::equal(scales, scales[0].expand_as(scales)));
  if (accelerator.num_processes() == 3) {  // 1, skipped, 1, 1 (twice the scale), 1
    CHECK(accelerator.loss_scale() == LossScale{.scale = 1024, .growth_tracker = 1});
  }
  accelerator.backward(model(1).sum());
  optimizer.step();
  CHECK_FALSE(optimizer.step_was_skipped());
}

TEST_CASE("a resumed fp16 run equals an uninterrupted one, including its skipped steps") {
  test::Folder folder(State(), "fp16_resume");
  const auto run = [&](bool resume) {
    auto options = fp16({.init_scale = 1025.3, .growth_factor = 1.7, .growth_interval = 3});
    options.project.dir = folder.path();
    Accelerator accelerator(options);
    at::manual_seed(resume ? 9 : 5);
    Net net;
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer] = accelerator.prepare(net, adamw);
    if (resume) accelerator.load_state();
    for (int step = resume ? 5 : 0; step < 12; ++step) {
      const auto data = at::full({2, 3}, 0.1 * (step + accelerator.process_index()));
      auto loss = at::mse_loss(model(data), at::ones({2, 1}));
      if (step == 3 || step == 6) loss = loss * infinity;
      accelerator.backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      CHECK(optimizer.step_was_skipped() == (step == 3 || step == 6));
      if (step == 4 && !resume) accelerator.save_state();
    }
    return std::pair(net, accelerator.loss_scale());
  };
  const auto [whole, scale] = run(false);
  const auto [resumed, resumed_scale] = run(true);
  CHECK(test::same_parameters(*whole, *resumed));
  CHECK(scale == resumed_scale);
  CHECK(scale != LossScale{.scale = 1025.3F});
}

TEST_CASE(
    "a checkpoint of another precision can be loaded; a scale that it does not have starts from its initial value") {
  test::Folder folder(State(), "precisions");
  const auto with = [&](Precision precision) {
    AcceleratorOptions options{.mixed_precision = precision, .cpu = true};
    options.project.dir = folder.path();
    return options;
  };
  Net net;
  {
    Accelerator accelerator(with(Precision::bf16));
    auto model = accelerator.prepare(net);
    accelerator.save_state();
  }
  for (const auto precision : {Precision::fp16, Precision::no}) {
    Accelerator accelerator(with(precision));
    auto model = accelerator.prepare(net);
    CHECK_NOTHROW(accelerator.load_state());
    CHECK(accelerator.loss_scale().scale == (precision == Precision::fp16 ? 65536 : 1));
    accelerator.save_state();  // in fp16: the next Accelerator finds a scale that it does not use
  }
}

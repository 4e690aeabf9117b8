// Compares training on a device with training on the CPU.
#include <c10/core/CachingDeviceAllocator.h>
#include <torch/nn/modules/container/sequential.h>

#include "../accelerator/fixtures.hpp"
#include "support/catch.hpp"
#include "support/differences.hpp"
#include "support/gpu.hpp"

using namespace hortator;
using test::Net;
using test::Rows;

namespace {

struct Run {
  AcceleratorOptions options = {};
  bool adamw = true;
  int steps = 20;
};

std::unique_ptr<torch::optim::Optimizer> optimizer_of(const Run& run, const Net& net) {
  if (run.adamw) return std::make_unique<torch::optim::AdamW>(net->parameters(), 1e-2);
  return std::make_unique<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(1e-2).momentum(0.9));
}

/// The losses of the given number of steps.
std::vector<double> trace(Run run) {
  run.options.log_with = {};
  Accelerator accelerator(run.options);
  set_seed(3);
  Net net;
  const auto own = optimizer_of(run, net);
  auto [model, optimizer, loader, schedule] =
      accelerator.prepare(net, *own, data_loader(Rows{40}, {.batch_size = 4, .shuffle = true}),
                          linear_warmup(*own, {.warmup_steps = 4, .total_steps = 40}));
  std::vector<double> losses;
  while (static_cast<int>(losses.size()) < run.steps) {
    for (auto& batch : loader) {
      auto micro_step = accelerator.accumulate(model);
      const auto loss = at::mse_loss(model(batch.data), batch.target);
      accelerator.backward(loss);
      if (accelerator.sync_gradients()) accelerator.clip_grad_norm_(net->parameters(), 1.0);
      optimizer.step();
      schedule.step();
      optimizer.zero_grad();
      losses.push_back(loss.template item<double>());
    }
  }
  return losses;
}

std::vector<double> on_cpu(Run run) {
  run.options.cpu = true;
  return trace(run);
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = hortator::test::larger(largest, std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i])));
  return largest;
}

}  // namespace

TEST_CASE("fp32: losses equal the CPU's for each optimizer, with accumulation, with and without fused kernels") {
  if (!test::has_gpu()) return;
  for (const bool adamw : {true, false}) {
    for (const bool fused : {true, false}) {
      const Run plain{.options = {.fused_optimizer = fused}, .adamw = adamw};
      CHECK(largest_difference(trace(plain), on_cpu(plain)) < 1e-5);
    }
    const Run accumulating{.options = {.gradient_accumulation_steps = 2}, .adamw = adamw};
    CHECK(largest_difference(trace(accumulating), on_cpu(accumulating)) < 1e-5);
  }
}

TEST_CASE("bf16 and fp16: losses are near those of fp32") {
  if (!test::has_gpu()) return;
  const auto exact = trace({});
  for (const auto precision : {Precision::bf16, Precision::fp16}) {
    // At the usual scale the first gradients overflow: their steps are skipped, and the losses are those of other
    // steps.
    const Run run{.options = {.mixed_precision = precision, .grad_scaler = {.init_scale = 1024}}};
    const auto on_device = trace(run);
    CHECK(largest_difference(on_device, exact) < 0.05);
    if (test::is_simulated) CHECK(on_device == on_cpu(run));
  }
}

TEST_CASE("ZeRO on one rank: losses equal those without ZeRO") {
  if (!test::has_gpu()) return;
  const auto plain = trace({});
  for (const int stage : {1, 2, 3}) {
    AcceleratorOptions options;
    options.zero.stage = stage;
    CHECK(largest_difference(trace({.options = options}), plain) < 1e-5);
  }
}

TEST_CASE("ZeRO with parameters and moments in host memory and files: losses equal those without ZeRO") {
  if (!test::has_gpu()) return;
  const auto plain = trace({});
  for (const auto* home : {"cpu", "folder_gpu_zero"}) {
    AcceleratorOptions options;
    options.zero = {.stage = 3, .offload_optimizer = home, .offload_parameters = home};
    CHECK(largest_difference(trace({.options = options}), plain) < 1e-5);
  }
}

TEST_CASE("a module with offloaded parameters is prepared from the host without filling the device, and returned") {
  if (!test::has_gpu()) return;
  constexpr std::int64_t width = 1024;
  constexpr int layers = 32;
  constexpr std::int64_t all_bytes = 4 * layers * width * (width + 1);
  Accelerator accelerator(
      {.ddp = {.bucket_cap_mb = 4},
       .zero = {.stage = 3, .offload_optimizer = "cpu", .offload_parameters = "cpu", .resident_bytes = all_bytes / 4},
       .log_with = {}});
  torch::nn::Sequential net;
  for (int i = 0; i < layers; ++i) net->push_back(torch::nn::Linear(width, width));
  torch::optim::AdamW adamw(net->parameters(), 1e-3);
  const auto before = accelerator.device_memory().allocated_bytes;
  c10::getDeviceAllocator(test::accelerator_type)->resetPeakStats(0);  // of tests that filled the device
  {
    auto [model, optimizer] = accelerator.prepare(net, adamw);
    for (int step = 0; step < 3; ++step) {
      accelerator.backward(model(at::ones({2, width}, accelerator.device())).square().mean());
      optimizer.step();
      optimizer.zero_grad();
    }
    CHECK(net->parameters().front().device().type() == test::accelerator_type);
  }
  // Pages of parameters and moments, a quarter each; gradients; and transfer buffers.
  CHECK(accelerator.device_memory().peak_bytes - before < 2 * static_cast<std::uint64_t>(all_bytes));
  accelerator.free_memory();
  CHECK(net->parameters().front().is_cpu());
}

TEST_CASE("an fp16 overflow on the device: the step is skipped, the scale falls, and training continues") {
  if (!test::has_gpu()) return;
  Accelerator accelerator({.mixed_precision = Precision::fp16, .grad_scaler = {.init_scale = 1024}, .log_with = {}});
  Net net;
  torch::optim::SGD sgd(net->parameters(), 1e-2);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  const auto before = net->out->weight.detach().clone();
  const auto input = at::ones({2, 3}, accelerator.device());
  accelerator.backward(model(input).sum() * 1e38);
  optimizer.step();
  CHECK(optimizer.step_was_skipped());
  CHECK(at::equal(net->out->weight, before));
  CHECK(accelerator.loss_scale().scale == 512);
  optimizer.zero_grad();
  accelerator.backward(model(input).sum());
  optimizer.step();
  CHECK_FALSE(accelerator.optimizer_step_was_skipped());
  CHECK_FALSE(at::equal(net->out->weight, before));
}

TEST_CASE("loss sums with counts on the device, gathering, and metrics") {
  if (!test::has_gpu()) return;
  Accelerator accelerator({.log_with = {}});
  Net net;
  torch::optim::SGD sgd(net->parameters(), 1e-2);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  const auto input = at::ones({4, 3}, accelerator.device());
  accelerator.backward(model(input).sum(), at::full({}, 4, accelerator.device()));
  const auto by_count = net->out->weight.grad().clone();
  optimizer.zero_grad();
  accelerator.backward(model(input).mean());
  CHECK(at::allclose(by_count, net->out->weight.grad()));
  CHECK(at::equal(accelerator.gather(input), input));
  CHECK(at::equal(accelerator.gather_for_metrics(input), input));
  CHECK(at::equal(accelerator.reduce(input, Reduce::mean), input));
}

TEST_CASE("fp32 on devices is not rounded to TF32 unless tf32 is set") {
  if (!test::has_gpu()) return;
  { const Accelerator accelerator({.tf32 = true, .log_with = {}}); }
  CHECK(at::globalContext().allowTF32CuBLAS());
  CHECK(at::globalContext().allowTF32CuDNN());
  const Accelerator accelerator({.log_with = {}});
  CHECK_FALSE(at::globalContext().allowTF32CuBLAS());
  CHECK_FALSE(at::globalContext().allowTF32CuDNN());
}

TEST_CASE("linear cross entropy: loss and gradients equal the CPU's, also of 37 classes that are filled up to 40") {
  if (!test::has_gpu()) return;
  const Accelerator accelerator({.log_with = {}});
  at::manual_seed(4);
  const auto hidden = at::randn({40, 16}), weight = at::randn({37, 16});
  const auto target = at::randint(37, {40}, at::kLong).masked_fill_(at::arange(40).eq(3), -100);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    INFO(c10::toString(type));
    const auto results_on = [&](c10::Device device) -> std::vector<at::Tensor> {
      const auto leaf = [&](const at::Tensor& one) { return one.clone().to(device, type).requires_grad_(); };
      const auto x = leaf(hidden), w = leaf(weight);
      const auto loss = nn::linear_cross_entropy(x, w, target.to(device), {.label_smoothing = 0.1, .rows_at_once = 16});
      loss.backward();
      return {loss.detach().cpu(), x.grad().cpu(), w.grad().cpu()};
    };
    const auto expected = results_on(at::kCPU), found = results_on(accelerator.device());
    const double tolerance = type == at::kFloat ? 1e-5 : 2e-2;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO("result " << i);
      REQUIRE(found[i].scalar_type() == expected[i].scalar_type());
      const auto most = (found[i] - expected[i]).abs().max().to(at::kDouble).item<double>();
      CHECK(most <= tolerance * (1 + expected[i].abs().max().to(at::kDouble).item<double>()));
    }
  }
}

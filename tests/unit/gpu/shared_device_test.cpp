// Compares several ranks on one device with the same ranks on the CPU: all collective features except NCCL.
#include <cstdlib>

#include "../accelerator/fixtures.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"

using namespace hortator;
using test::Net;
using test::Rows;

namespace {

bool share_device() {
  setenv("HORTATOR_SHARE_DEVICES", "1", /*replace=*/1);
  return test::has_gpu();
}

/// The losses of 12 steps, averaged over the ranks, and the final weights.
std::vector<double> shared_trace(AcceleratorOptions options, bool on_cpu) {
  options.log_with = {};
  options.cpu = on_cpu;
  Accelerator accelerator(options);
  set_seed(3);
  Net net;
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  auto [model, optimizer, loader] =
      accelerator.prepare(net, adamw, data_loader(Rows{48}, {.batch_size = 2, .shuffle = true}));
  std::vector<double> trace;
  int step = 0;
  while (step < 12) {
    for (auto& batch : loader) {
      auto micro_step = accelerator.accumulate(model);
      const auto loss = at::mse_loss(model(batch.data), batch.target);
      accelerator.backward(loss);
      if (accelerator.sync_gradients()) accelerator.clip_grad_norm_(net->parameters(), 1.0);
      optimizer.step();
      optimizer.zero_grad();
      trace.push_back(accelerator.gather_for_metrics(loss).mean().template item<double>());
      if (++step == 12) break;
    }
  }
  const auto full = accelerator.summon_full_parameters(model);
  trace.push_back(net->out->weight.sum().item<double>());
  return trace;
}

void check_near(const AcceleratorOptions& options) {
  const auto there = shared_trace(options, false);
  const auto here = shared_trace(options, true);
  for (std::size_t i = 0; i < here.size(); ++i) CHECK(there[i] == Approx(here[i]).epsilon(1e-5).margin(1e-5));
}

}  // namespace

TEST_CASE("ranks that share a device train as they do on the CPU", "[shared]") {
  if (!share_device()) return;
  check_near({});
  check_near({.gradient_accumulation_steps = 2});
  check_near({.ddp = {.find_unused_parameters = true}});
  for (const int stage : {1, 2, 3}) {
    AcceleratorOptions options;
    options.zero.stage = stage;
    check_near(options);
  }
}

TEST_CASE("ranks that share a device offload parameters and moments to host memory and files", "[shared]") {
  if (!share_device()) return;
  for (const auto* home : {"cpu", "folder_gpu_shared"}) {
    check_near({.zero = {.stage = 3, .offload_optimizer = home, .offload_parameters = home}});
    check_near({.zero = {.stage = 2, .offload_optimizer = home}});
  }
}

TEST_CASE("a gradient that is missing on one rank throws on all ranks of a device", "[shared]") {
  if (!share_device()) return;
  Accelerator accelerator({.log_with = {}});
  Net net;
  auto model = accelerator.prepare(net);
  const auto input = at::ones({2, 3}, accelerator.device());
  accelerator.backward(model(input).sum());
  const bool is_missing = accelerator.process_index() == 1;
  CHECK_THROWS_WITH(
      accelerator.backward(is_missing ? net->out(at::ones({2, 4}, accelerator.device())).sum() : model(input).sum()),
      ContainsSubstring("no gradient to hidden.weight"));
}

TEST_CASE("an overflow on one rank of a device skips the step on all", "[shared]") {
  if (!share_device()) return;
  Accelerator accelerator({.mixed_precision = Precision::fp16, .grad_scaler = {.init_scale = 1024}, .log_with = {}});
  Net net;
  torch::optim::SGD sgd(net->parameters(), 1e-2);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  const double scale = accelerator.is_last_process() ? 1e38 : 1;
  accelerator.backward(model(at::ones({2, 3}, accelerator.device())).sum() * scale);
  optimizer.step();
  CHECK(optimizer.step_was_skipped());
  CHECK(accelerator.loss_scale().scale == 512);
}

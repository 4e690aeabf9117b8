// A program on the simulated accelerator, for watched_run.sh: `clean` trains, `planted` also lets two streams write to
// the same memory in no order, `cpu` trains on the CPU.
#include <ATen/ops/full.h>
#include <c10/core/StreamGuard.h>

#include <string_view>

#include "../accelerator/fixtures.hpp"
#include "machine/device/stream.hpp"
#include "support/sim/sim.hpp"

using namespace hortator;

/// Not inlined, and exported: reports name the functions that called the operators.
[[gnu::noinline, gnu::visibility("default")]] void fill_on_own_stream(const at::Tensor& values);
[[gnu::noinline, gnu::visibility("default")]] void double_on_side_stream(const at::Tensor& values);

void fill_on_own_stream(const at::Tensor& values) { values.fill_(1); }

void double_on_side_stream(const at::Tensor& values) {
  const machine::Stream side(values.device());
  const c10::StreamGuard guard(side.get());
  values.mul_(2);
}

namespace {

void train(bool on_cpu) {
  Accelerator accelerator({.gradient_accumulation_steps = 2, .cpu = on_cpu, .log_with = {}});
  set_seed(3);
  test::Net net(0.1);
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  auto [model, optimizer, loader] =
      accelerator.prepare(net, adamw, data_loader(test::Rows{40}, {.batch_size = 2, .shuffle = true}));
  for (auto& batch : loader) {
    auto micro_step = accelerator.accumulate(model);
    accelerator.backward(at::mse_loss(model(batch.data), batch.target));
    if (accelerator.sync_gradients()) accelerator.clip_grad_norm_(net->parameters(), 0.5);
    optimizer.step();
    optimizer.zero_grad();
  }
  accelerator.wait_for_everyone();
}

void run(std::string_view mode) {
  sim::set_policy(sim::Policy::late);
  if (mode == "cpu") return train(true);
  train(false);
  if (mode != "planted") return;
  const auto values = at::full({100}, 0, Accelerator({.log_with = {}}).device());
  fill_on_own_stream(values);
  double_on_side_stream(values);
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] { run(argc > 1 ? argv[1] : "clean"); });
}

#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include <string>

#include "cli/bench/measurements.hpp"

namespace hortator::cli::bench {
namespace {

constexpr std::int64_t batch_size = 32;
constexpr std::int64_t inputs = 64;
constexpr std::int64_t classes = 10;

// So small that what surrounds the arithmetic shows.
struct NetImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) { return out(at::relu(hidden(at::relu(in(x))))); }

  torch::nn::Linear in = register_module("in", torch::nn::Linear(inputs, 128));
  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(128, 128));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(128, classes));
};
TORCH_MODULE(Net);

struct Batch {
  at::Tensor data;
  at::Tensor target;
};

Batch batch_on(c10::Device device) {
  return {at::randn({batch_size, inputs}).to(device), at::randint(classes, {batch_size}, at::kLong).to(device)};
}

}  // namespace

std::vector<Result> step(Accelerator& accelerator, const Plan& plan, const Selection&) {
  const auto batch = batch_on(accelerator.device());

  Net bare;
  bare->to(accelerator.device());
  torch::optim::AdamW bare_optimizer(bare->parameters(), 1e-3);
  const auto bare_step = [&] {
    at::cross_entropy_loss(bare(batch.data), batch.target).backward();
    bare_optimizer.step();
    bare_optimizer.zero_grad();
  };

  Net net;
  torch::optim::AdamW adamw(net->parameters(), 1e-3);
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  const auto prepared_step = [&, &model = model, &optimizer = optimizer] {
    accelerator.backward(at::cross_entropy_loss(model(batch.data), batch.target));
    optimizer.step();
    optimizer.zero_grad();
  };

  const auto line_up = [&] { accelerator.wait_for_everyone(); };
  const Sides sides = {.ours = prepared_step, .reference = bare_step, .line_up = line_up};
  return {{.name = "step",
           .params = {{"ranks", accelerator.num_processes()},
                      {"threads", at::get_num_threads()},
                      {"device", accelerator.device().str()},
                      {"batch", batch_size},
                      {"steps", plan.steps}},
           .reference = "bare LibTorch loop on each rank",
           .timing = time_in_pairs(sides, plan)}};
}

}  // namespace hortator::cli::bench

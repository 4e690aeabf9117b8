#pragma once

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adamw.h>

#include <functional>
#include <hortator/hortator.hpp>
#include <memory>
#include <vector>

namespace hortator::test {

/// A layer whose weight is shared with another layer.
struct Tied : torch::nn::Module {
  explicit Tied(const at::Tensor& shared) : weight(register_parameter("weight", shared)) {}
  at::Tensor forward(const at::Tensor& x) { return at::linear(x, weight); }
  at::Tensor weight;
};

/// A model with sizes that no number of ranks divides, a tied weight, a frozen one, a layer that only half of the
/// passes use, and a scalar parameter.
struct ShardableImpl : torch::nn::Module {
  explicit ShardableImpl(at::ScalarType type = at::kFloat) {
    at::manual_seed(11);
    first = register_module("first", torch::nn::Linear(7, 33));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({33})));
    second = register_module("second", torch::nn::Linear(33, 33));
    tied = register_module("tied", std::make_shared<Tied>(second->weight));
    detour = register_module("detour", torch::nn::Linear(33, 33));
    frozen = register_module("frozen", torch::nn::Linear(33, 5));
    frozen->weight.requires_grad_(false);
    scale = register_parameter("scale", at::ones({}));
    register_buffer("calls", at::zeros({}, at::kLong));
    to(type);
  }
  at::Tensor forward(const at::Tensor& x, bool with_detour = true) {
    named_buffers()["calls"].add_(1);
    auto hidden = at::tanh(norm(first(x)));
    hidden = at::tanh(tied->forward(at::tanh(second(hidden))));
    if (with_detour) hidden = at::tanh(detour(hidden));
    return frozen(hidden) * scale;
  }
  torch::nn::Linear first{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear second{nullptr};
  std::shared_ptr<Tied> tied;
  torch::nn::Linear detour{nullptr};
  torch::nn::Linear frozen{nullptr};
  at::Tensor scale;
};
TORCH_MODULE(Shardable);

/// This rank's batch for a step.
inline at::Tensor batch(const State& state, int step, at::ScalarType type = at::kFloat) {
  const auto number = static_cast<double>(step * state.num_processes() + state.process_index());
  return at::sin(at::arange(6 * 7, at::kFloat).view({6, 7}) * 0.37 + number).to(type);
}

inline std::vector<at::Tensor> copies_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> copies;
  for (const auto& parameter : module.parameters()) copies.push_back(parameter.detach().clone());
  return copies;
}

inline bool are_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!at::equal(a[i], b.at(i))) return false;
  }
  return a.size() == b.size();
}

inline bool are_close(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b, double tolerance) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!at::allclose(a[i], b.at(i), tolerance, tolerance)) return false;
  }
  return a.size() == b.size();
}

/// The parameters of the module, each once, as a careful program gives them to an optimizer.
inline std::vector<at::Tensor> distinct(const torch::nn::Module& module) {
  std::vector<at::Tensor> parameters;
  for (const auto& item : module.named_parameters()) {
    if (item.key() != "tied.weight") parameters.push_back(item.value());
  }
  return parameters;
}

using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(Shardable&)>;

inline std::unique_ptr<torch::optim::Optimizer> make_adamw(Shardable& net) {
  return std::make_unique<torch::optim::AdamW>(distinct(*net), torch::optim::AdamWOptions(1e-2).weight_decay(0.1));
}

using MakeBatch = std::function<at::Tensor(const State&, int step)>;

/// Resumes from the checkpoint if there is one, trains two steps and saves. Returns the parameters. @collective
inline std::vector<at::Tensor> resume(AcceleratorOptions options, const MakeBatch& make_batch,
                                      at::ScalarType type = at::kFloat) {
  options.ddp.bucket_cap_mb = 3e-3;
  Accelerator accelerator(options);
  Shardable net(type);
  {
    const at::NoGradGuard no_grad;
    for (auto& parameter : net->parameters()) parameter.mul_(1.5);  // differs from a new model
  }
  auto adamw = make_adamw(net);
  auto [model, optimizer] = accelerator.prepare(net, *adamw);
  if (accelerator.has_checkpoint()) accelerator.load_state();
  for (int step = 0; step < 2; ++step) {
    accelerator.backward(model(make_batch(accelerator, step)).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }
  accelerator.save_state();
  accelerator.wait_for_checkpoint();
  auto parameters = copies_of(*net);
  accelerator.wait_for_everyone();
  return parameters;
}

/// The same with a different batch on each rank. @collective
inline std::vector<at::Tensor> resume(const AcceleratorOptions& options) {
  return resume(options, [](const State& state, int step) { return batch(state, step); });
}

}  // namespace hortator::test

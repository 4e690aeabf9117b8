#pragma once

#include <ATen/ops/equal.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/tanh.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <filesystem>
#include <hortator/hortator.hpp>
#include <string>
#include <vector>

#include "unit/accelerator/fixtures.hpp"

namespace hortator::test {

inline constexpr std::int64_t side = 64;
inline constexpr int stack_height = 8;
inline constexpr Bytes layer_bytes = (side * side + side) * 4.0;
inline constexpr Bytes half_of_stack = stack_height * layer_bytes / 2;

/// Identical layers, and a normalisation with buffers.
struct StackImpl : torch::nn::Module {
  StackImpl() {
    for (int i = 0; i < stack_height; ++i)
      layers.push_back(register_module("layer" + std::to_string(i), torch::nn::Linear(side, side)));
    norm = register_module("norm", torch::nn::BatchNorm1d(side));
  }
  at::Tensor forward(at::Tensor x) {
    for (auto& layer : layers) x = at::tanh(layer(x));
    return norm(x);
  }
  std::vector<torch::nn::Linear> layers;
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(Stack);

inline Stack resident_stack() {
  at::manual_seed(31);
  Stack net;
  const at::NoGradGuard no_grad;
  net->norm->running_mean.normal_();
  net->eval();
  return net;
}

inline Stack empty_stack() {
  auto net = init_empty_weights([] { return Stack(); });
  net->eval();
  return net;
}

inline at::Tensor some_input() { return at::linspace(-1, 1, 3 * side).view({3, side}); }

inline bool is_same(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && at::equal(a, b);
}

/// A model stored in files of every format, and its output.
class StoredStack {
 public:
  explicit StoredStack(const std::string& name) : folder_(accelerator_, name) {
    auto net = resident_stack();
    const at::NoGradGuard no_grad;
    expected = net->forward(some_input());
    accelerator_.save_model(net, weights());
    accelerator_.save_model(net, folder_.path() / "shards", {.max_shard_size = "40KB"});
    accelerator_.save_model(net, folder_.path() / "pickles", {.safe_serialization = false});
    auto model = accelerator_.prepare(net);
    accelerator_.save_state(folder_.path() / "state");
  }
  std::filesystem::path weights() const { return folder_.path() / "weights"; }
  const std::filesystem::path& folder() const { return folder_.path(); }
  const State& state() const { return accelerator_; }

  at::Tensor expected;

 private:
  Accelerator accelerator_{{.cpu = true}};
  Folder folder_;
};

inline const MaxMemory half_in_memory = {{DevicePlacement::cpu(), half_of_stack}};

}  // namespace hortator::test

// What a divided layer sends, counted at MPI's own functions.
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "integration/scale/traffic.hpp"
#include "parallel/tensor/divided_module.hpp"
#include "unit/comm/backends.hpp"
#include "unit/parallel/tensor/tensor_fixture.hpp"

using namespace hortator;

namespace {

constexpr std::int64_t width = 64, heads = 4, batch = 2, length = 32;

struct LayerImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& before) {
    const auto parts = qkv(norm_1(before)).chunk(3, -1);
    const auto split = [](const at::Tensor& part) { return part.unflatten(-1, {heads, -1}).transpose(1, 2); };
    const auto mixed = at::scaled_dot_product_attention(split(parts[0]), split(parts[1]), split(parts[2]));
    const auto x = before + out(mixed.transpose(1, 2).flatten(2));
    return x + down(at::gelu(up(norm_2(x))));
  }
  torch::nn::LayerNorm norm_1 = register_module("norm_1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
  torch::nn::LayerNorm norm_2 = register_module("norm_2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
  torch::nn::Linear qkv = register_module("qkv", torch::nn::Linear(width, 3 * width));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(width, width));
  torch::nn::Linear up = register_module("up", torch::nn::Linear(width, 4 * width));
  torch::nn::Linear down = register_module("down", torch::nn::Linear(4 * width, width));
};
TORCH_MODULE(Layer);

TensorPlan plan(bool sequence) {
  TensorPlan rules = {{.pattern = "qkv", .division = TensorDivision::columns, .blocks = 3},
                      {"out", TensorDivision::rows},
                      {"up", TensorDivision::columns},
                      {"down", TensorDivision::rows}};
  if (sequence) rules.push_back({"*", TensorDivision::sequence});
  return rules;
}

/// Bytes in the buffers of MPI's calls in a step of a stack of layers.
std::int64_t bytes_of(int layers, bool sequence) {
  const auto communicator = test::make_backend("mpi");
  const auto ranks = std::make_shared<parallel::TensorRanks>(*communicator, *communicator);
  torch::nn::ModuleList stack;
  for (int i = 0; i < layers; ++i) stack->push_back(Layer());
  const parallel::DividedModule parts(*stack, plan(sequence), ranks);
  const auto before = scale::traffic().bytes;
  auto x = at::ones({batch, length, width}).requires_grad_();
  auto y = x;
  for (const auto& layer : *stack) y = layer->as<Layer>()->forward(y);
  y.sum().backward();
  return scale::traffic().bytes - before;
}

}  // namespace

TEST_CASE("a layer sends four sums of its activations, and not 1.3 times as much") {
  const double of_layer = static_cast<double>(bytes_of(5, false) - bytes_of(3, false)) / 2;
  const auto sums = 4.0 * batch * length * width * 4;  // bytes of float32
  // MPI is passed a buffer with the addends and one for the sums, or one for both.
  CHECK(of_layer <= 1.3 * 2 * sums);
  CHECK(of_layer >= sums);
}

TEST_CASE("with divided sequences a layer sends four reduce-scatters and gathers, and gathers two inputs again") {
  const auto n = static_cast<double>(mpi::Communicator::world().size());
  const double of_layer = static_cast<double>(bytes_of(5, true) - bytes_of(3, true)) / 2;
  const auto activation = 1.0 * batch * length * width * 4;
  // The buffers of either are a whole tensor and a part.
  CHECK(of_layer <= 1.3 * (4 + 4 + 2) * activation * (1 + 1 / n));
  CHECK(of_layer >= (4 + 4 + 2) * activation);
}

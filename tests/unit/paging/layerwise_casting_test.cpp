#include <ATen/ATen.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/rnn.h>

#include <hortator/bigmodel/layerwise_casting.hpp>
#include <hortator/error.hpp>

#include "fixtures.hpp"
#include "support/catch.hpp"

namespace hortator {
namespace {

using testing::same_bits;

constexpr std::int64_t width = 32;

torch::nn::Sequential cast_net(at::ScalarType type) {
  at::manual_seed(3);
  torch::nn::Sequential net(torch::nn::Linear(width, 2 * width),
                            torch::nn::LayerNorm(torch::nn::LayerNormOptions({2 * width})),
                            torch::nn::Linear(2 * width, width));
  net->to(type);
  return net;
}

/// The same net with weights that went through the smaller type.
torch::nn::Sequential rounded_net(at::ScalarType type, at::ScalarType storage_type) {
  auto net = cast_net(type);
  const at::NoGradGuard no_grad;
  for (const auto& parameter : net->parameters()) {
    if (parameter.dim() >= 2) at::Tensor(parameter).copy_(parameter.to(storage_type));
  }
  return net;
}

}  // namespace

TEST_CASE("a model with weights in a smaller type computes with the rounded weights", "[casting]") {
  const at::NoGradGuard no_grad;
  for (const auto& [type, storage] : {std::pair(at::kFloat, at::kFloat8_e4m3fn), std::pair(at::kFloat, at::kBFloat16),
                                      std::pair(at::kBFloat16, at::kFloat8_e5m2)}) {
    INFO(type << " as " << storage);
    auto net = cast_net(type);
    auto rounded = rounded_net(type, storage);
    const auto input = at::linspace(-1, 1, 4 * width).view({4, width}).to(type);
    const auto bias = net->named_parameters()["0.bias"].clone();
    auto casting = attach_layerwise_casting_hooks(net, storage);
    const auto expected = rounded->forward(input);
    for (int pass = 0; pass < 2; ++pass) CHECK(same_bits(net->forward(input), expected));
    CHECK_FALSE(same_bits(expected, cast_net(type)->forward(input)));
    CHECK(same_bits(net->named_parameters()["0.bias"], bias));
    const auto weight_bytes = 2 * 2 * width * width * c10::elementSize(type);
    CHECK(casting.counters().offloaded_bytes == weight_bytes);
    casting.remove();
    for (std::size_t i = 0; i < net->parameters().size(); ++i)
      CHECK(same_bits(net->parameters()[i], rounded->parameters()[i]));
  }
}

TEST_CASE("only two weights of their own type are in memory at a time", "[casting]") {
  const at::NoGradGuard no_grad;
  torch::nn::Sequential net;
  for (int i = 0; i < 12; ++i) net->push_back(torch::nn::Linear(width, width));
  auto casting = attach_layerwise_casting_hooks(net, at::kFloat8_e4m3fn);
  net->forward(at::ones({1, width}));
  CHECK(casting.counters().offloaded_bytes == 12 * width * width * sizeof(float));
  CHECK(casting.counters().peak_resident_bytes <= 2 * width * width * sizeof(float) + 2 * 4096);
}

TEST_CASE("layers that use several weights in one operator, and gradients, work with cast weights", "[casting]") {
  at::manual_seed(5);
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(8, 16).num_layers(2));
  auto casting = attach_layerwise_casting_hooks(lstm, at::kBFloat16);
  auto input = at::ones({3, 1, 8}).requires_grad_();
  std::get<0>(lstm->forward(input)).sum().backward();
  const auto gradient = input.grad().clone();
  casting.remove();
  input.mutable_grad() = at::Tensor();
  std::get<0>(lstm->forward(input)).sum().backward();
  CHECK(same_bits(input.grad(), gradient));
}

TEST_CASE("parameters that are named keep their type, and what cannot be cast is refused", "[casting]") {
  const at::NoGradGuard no_grad;
  auto net = cast_net(at::kFloat);
  const auto first = net->named_parameters()["0.weight"].clone();
  {
    auto casting = attach_layerwise_casting_hooks(net, at::kBFloat16, {.keep_resident = {"0"}});
    CHECK(casting.counters().offloaded_bytes == 2 * width * width * sizeof(float));
  }
  CHECK(same_bits(net->named_parameters()["0.weight"], first));
  CHECK_THROWS_WITH(attach_layerwise_casting_hooks(net, at::kLong), ContainsSubstring("were to be kept as Long"));
  CHECK_THROWS_WITH(attach_layerwise_casting_hooks(net, at::kFloat8_e8m0fnu), ContainsSubstring("were to be kept as"));
  CHECK_THROWS_WITH(attach_layerwise_casting_hooks(net, at::kDouble), ContainsSubstring("no weight becomes smaller"));
  CHECK_THROWS_WITH(attach_layerwise_casting_hooks(net, at::kHalf, {.keep_resident = {"9"}}),
                    ContainsSubstring("no parameter or module '9'"));
  net->named_parameters()["2.weight"][0][0] = 1e6;
  CHECK_THROWS_WITH(attach_layerwise_casting_hooks(net, at::kFloat8_e4m3fn),
                    ContainsSubstring("'2.weight' does not fit into float8_e4m3fn"));
  CHECK(net->named_parameters()["2.weight"][0][0].item<float>() == 1e6F);
  CHECK(same_bits(net->named_parameters()["0.weight"], first));
}

TEST_CASE("a weight that shares its memory with a vector keeps its type, as the vector does") {
  struct Flat : torch::nn::Module {
    Flat() {
      const auto memory = at::rand({width * width + width});
      register_parameter("weight", memory.narrow(0, 0, width * width).view({width, width}));
      register_parameter("bias", memory.narrow(0, width * width, width));
      own = register_parameter("own", at::rand({width, width}));
    }
    at::Tensor own;
  };
  const auto net = std::make_shared<Flat>();
  auto model = net;
  const auto bias = net->named_parameters()["bias"].detach().clone();
  auto casting = attach_layerwise_casting_hooks(model, at::kBFloat16);
  CHECK(casting.counters().offloaded_bytes == width * width * sizeof(float));
  CHECK(same_bits(net->named_parameters()["bias"], bias));
}

}  // namespace hortator

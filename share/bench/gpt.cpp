#include <ATen/ops/arange.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>

#include "bench/transformer_layer.hpp"

namespace hortator::bench {
namespace {

constexpr std::int64_t gpt_width = 768;
constexpr std::int64_t gpt_vocabulary = 50257;

// Pre-norm, GELU by tanh.
struct DecoderLayer final : TransformerLayer {
  DecoderLayer() : TransformerLayer(gpt_width, /*heads=*/12) {}

  at::Tensor forward(const at::Tensor& input) override {
    const auto x = input + attention(norm_1(input), Sight::backwards);
    return x + linear(at::gelu(linear(norm_2(x), up), "tanh"), down);
  }
};

// The output projection shares the embedding's weight.
struct Gpt final : Net {
  Gpt() {
    for (int i = 0; i < 12; ++i) layers->push_back(std::make_shared<DecoderLayer>());
  }

  at::Tensor forward(const at::Tensor& ids) override {
    auto x = text(ids) + places(at::arange(ids.size(1), ids.options()));
    for (const auto& layer : *layers) x = layer->as<DecoderLayer>()->forward(x);
    return at::linear(norm(x), text->weight).flatten(0, 1);
  }

  torch::nn::Embedding text = register_module("words", torch::nn::Embedding(gpt_vocabulary, gpt_width));
  torch::nn::Embedding places = register_module("places", torch::nn::Embedding(1024, gpt_width));
  torch::nn::ModuleList layers = register_module("layers", torch::nn::ModuleList());
  torch::nn::LayerNorm norm = register_module("norm", layer_norm(gpt_width));
};

}  // namespace

std::shared_ptr<Net> make_gpt() { return std::make_shared<Gpt>(); }

}  // namespace hortator::bench

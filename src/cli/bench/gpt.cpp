#include <ATen/ops/arange.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "cli/bench/workloads.hpp"

namespace hortator::cli::bench {
namespace {

constexpr std::int64_t gpt_width = 768;
constexpr std::int64_t gpt_heads = 12;
constexpr std::int64_t gpt_words = 50257;

torch::nn::LayerNorm gpt_norm() { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({gpt_width})); }

// Pre-norm, GELU by tanh, no dropout.
struct DecoderLayer final : Net {
  at::Tensor forward(const at::Tensor& input) override {
    const auto x = input + attention(norm_1(input));
    return x + down(at::gelu(up(norm_2(x)), "tanh"));
  }

  at::Tensor attention(const at::Tensor& x) {
    const auto split = [&](const at::Tensor& part) { return part.unflatten(-1, {gpt_heads, -1}).transpose(1, 2); };
    const auto parts = qkv(x).chunk(3, -1);
    const auto mixed = at::scaled_dot_product_attention(split(parts[0]), split(parts[1]), split(parts[2]),
                                                        /*attn_mask=*/{}, /*dropout_p=*/0, /*is_causal=*/true);
    return out(mixed.transpose(1, 2).flatten(-2));
  }

  torch::nn::Linear qkv = register_module("qkv", torch::nn::Linear(gpt_width, 3 * gpt_width));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(gpt_width, gpt_width));
  torch::nn::Linear up = register_module("up", torch::nn::Linear(gpt_width, 4 * gpt_width));
  torch::nn::Linear down = register_module("down", torch::nn::Linear(4 * gpt_width, gpt_width));
  torch::nn::LayerNorm norm_1 = register_module("norm_1", gpt_norm());
  torch::nn::LayerNorm norm_2 = register_module("norm_2", gpt_norm());
};

// The words' scores come from the embedding's own weight.
struct Gpt final : Net {
  Gpt() {
    for (int i = 0; i < 12; ++i) layers->push_back(std::make_shared<DecoderLayer>());
  }

  at::Tensor forward(const at::Tensor& ids) override {
    auto x = words(ids) + places(at::arange(ids.size(1), ids.options()));
    for (const auto& layer : *layers) x = layer->as<DecoderLayer>()->forward(x);
    return at::linear(norm(x), words->weight).flatten(0, 1);
  }

  torch::nn::Embedding words = register_module("words", torch::nn::Embedding(gpt_words, gpt_width));
  torch::nn::Embedding places = register_module("places", torch::nn::Embedding(1024, gpt_width));
  torch::nn::ModuleList layers = register_module("layers", torch::nn::ModuleList());
  torch::nn::LayerNorm norm = register_module("norm", gpt_norm());
};

}  // namespace

std::shared_ptr<Net> make_gpt() { return std::make_shared<Gpt>(); }

}  // namespace hortator::cli::bench

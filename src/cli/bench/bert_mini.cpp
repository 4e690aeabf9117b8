#include <ATen/ops/arange.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "cli/bench/workloads.hpp"

namespace hortator::cli::bench {
namespace {

constexpr std::int64_t width = 256;
constexpr std::int64_t heads = 4;

torch::nn::LayerNorm layer_norm() { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})); }

// Post-norm, exact GELU, no dropout.
struct EncoderLayer final : Net {
  at::Tensor forward(const at::Tensor& input) override {
    const auto x = norm_1(input + attention(input));
    return norm_2(x + down(at::gelu(up(x))));
  }

  at::Tensor attention(const at::Tensor& x) {
    const auto split = [&](const at::Tensor& part) { return part.unflatten(-1, {heads, -1}).transpose(1, 2); };
    const auto parts = qkv(x).chunk(3, -1);
    const auto mixed = at::scaled_dot_product_attention(split(parts[0]), split(parts[1]), split(parts[2]));
    return out(mixed.transpose(1, 2).flatten(-2));
  }

  torch::nn::Linear qkv = register_module("qkv", torch::nn::Linear(width, 3 * width));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(width, width));
  torch::nn::Linear up = register_module("up", torch::nn::Linear(width, 4 * width));
  torch::nn::Linear down = register_module("down", torch::nn::Linear(4 * width, width));
  torch::nn::LayerNorm norm_1 = register_module("norm_1", layer_norm());
  torch::nn::LayerNorm norm_2 = register_module("norm_2", layer_norm());
};

struct BertMini final : Net {
  BertMini() {
    for (int i = 0; i < 4; ++i) layers->push_back(std::make_shared<EncoderLayer>());
  }

  at::Tensor forward(const at::Tensor& ids) override {
    auto x = norm(tokens(ids) + positions(at::arange(ids.size(1), ids.options())));
    for (const auto& layer : *layers) x = layer->as<EncoderLayer>()->forward(x);
    return head(at::tanh(pool(x.select(1, 0))));
  }

  torch::nn::Embedding tokens = register_module("tokens", torch::nn::Embedding(30522, width));
  torch::nn::Embedding positions = register_module("positions", torch::nn::Embedding(512, width));
  torch::nn::LayerNorm norm = register_module("norm", layer_norm());
  torch::nn::ModuleList layers = register_module("layers", torch::nn::ModuleList());
  torch::nn::Linear pool = register_module("pool", torch::nn::Linear(width, width));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(width, 2));
};

}  // namespace

std::shared_ptr<Net> make_bert_mini() { return std::make_shared<BertMini>(); }

}  // namespace hortator::cli::bench

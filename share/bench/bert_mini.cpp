#include <ATen/ops/arange.h>
#include <ATen/ops/gelu.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>

#include "bench/transformer_layer.hpp"

namespace hortator::bench {
namespace {

constexpr std::int64_t bert_width = 256;

// Post-norm, exact GELU.
struct EncoderLayer final : TransformerLayer {
  EncoderLayer() : TransformerLayer(bert_width, /*heads=*/4) {}

  at::Tensor forward(const at::Tensor& input) override {
    const auto x = norm_1(input + attention(input, Sight::both_ways));
    return norm_2(x + linear(at::gelu(linear(x, up)), down));
  }
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

  torch::nn::Embedding tokens = register_module("tokens", torch::nn::Embedding(30522, bert_width));
  torch::nn::Embedding positions = register_module("positions", torch::nn::Embedding(512, bert_width));
  torch::nn::LayerNorm norm = register_module("norm", layer_norm(bert_width));
  torch::nn::ModuleList layers = register_module("layers", torch::nn::ModuleList());
  torch::nn::Linear pool = register_module("pool", torch::nn::Linear(bert_width, bert_width));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(bert_width, 2));
};

}  // namespace

std::shared_ptr<Net> make_bert_mini() { return std::make_shared<BertMini>(); }

}  // namespace hortator::bench

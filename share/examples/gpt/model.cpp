#include "model.hpp"

#include <ATen/ATen.h>
#include <torch/nn/init.h>

#include <cmath>
#include <string>

namespace gpt {
namespace {

torch::nn::LayerNorm norm_of(std::int64_t width) { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})); }

// Rotary position embedding: returns cosine and sine of the angles, each with its own frequency per pair of elements.
// Scores between two tokens then depend on their distance.
at::Tensor rotations_of(const ModelOptions& options) {
  const auto pairs = options.width / options.heads / 2;
  const auto frequencies = at::pow(1000.0, -at::arange(pairs, at::kFloat) / static_cast<double>(pairs));
  const auto angles = at::outer(at::arange(options.context, at::kFloat), frequencies).repeat({1, 2});
  return at::stack({angles.cos(), angles.sin()});
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& rotations) {
  const auto halves = x.chunk(2, -1);
  return x * rotations[0] + at::cat({-halves[1], halves[0]}, -1) * rotations[1];
}

// Small random weights, smaller ones in the layers that add to the residual stream: the first scores are nearly equal.
void initialise(torch::nn::Module& model, const ModelOptions& options) {
  const double small = 0.6 / std::sqrt(static_cast<double>(options.width));
  const double smaller = small / std::sqrt(2.0 * static_cast<double>(options.layers));
  for (auto& parameter : model.named_parameters()) {
    const bool adds_to_sum =
        parameter.key().find("project") != std::string::npos || parameter.key().find("narrow") != std::string::npos;
    if (parameter.value().dim() > 1) torch::nn::init::normal_(parameter.value(), 0, adds_to_sum ? smaller : small);
  }
}

}  // namespace

BlockImpl::BlockImpl(const ModelOptions& options)
    : heads_(options.heads),
      attention_norm_(register_module("attention_norm", norm_of(options.width))),
      network_norm_(register_module("network_norm", norm_of(options.width))),
      query_key_value_(register_module("query_key_value", torch::nn::Linear(options.width, 3 * options.width))),
      project_(register_module("project", torch::nn::Linear(options.width, options.width))),
      widen_(register_module("widen", torch::nn::Linear(options.width, 4 * options.width))),
      narrow_(register_module("narrow", torch::nn::Linear(4 * options.width, options.width))) {}

BlockImpl::Heads BlockImpl::heads_of(const at::Tensor& x, const at::Tensor& rotations) {
  const auto batch = x.size(0), time = x.size(1), width = x.size(2);
  auto parts = query_key_value_(x).view({batch, time, 3, heads_, width / heads_}).permute({2, 0, 3, 1, 4}).unbind(0);
  return {.queries = rotate(parts[0], rotations), .keys = rotate(parts[1], rotations), .values = parts[2]};
}

at::Tensor BlockImpl::joined(const at::Tensor& mixed) { return project_(mixed.transpose(1, 2).flatten(2)); }

at::Tensor BlockImpl::network(const at::Tensor& x) { return narrow_(at::gelu(widen_(network_norm_(x)), "tanh")); }

at::Tensor BlockImpl::forward(at::Tensor x, const at::Tensor& rotations) {
  const auto heads = heads_of(attention_norm_(x), rotations);
  x = x + joined(at::scaled_dot_product_attention(heads.queries, heads.keys, heads.values, {}, 0.0,
                                                  /*is_causal=*/true));
  return x + network(x);
}

at::Tensor BlockImpl::forward_cached(at::Tensor x, const at::Tensor& rotations, const at::Tensor& mask,
                                     Cache::Layer& seen) {
  const auto heads = heads_of(attention_norm_(x), rotations);
  seen.keys = seen.keys.defined() ? at::cat({seen.keys, heads.keys}, 2) : heads.keys;
  seen.values = seen.values.defined() ? at::cat({seen.values, heads.values}, 2) : heads.values;
  x = x + joined(at::scaled_dot_product_attention(heads.queries, seen.keys, seen.values, mask));
  return x + network(x);
}

GptImpl::GptImpl(const ModelOptions& options)
    : options_(options),
      tokens_(register_module("tokens", torch::nn::Embedding(options.vocabulary, options.width))),
      blocks_(register_module("blocks", torch::nn::ModuleList())),
      norm_(register_module("norm", norm_of(options.width))),
      rotations_(register_buffer("turns", rotations_of(options))) {
  for (std::int64_t layer = 0; layer < options.layers; ++layer) blocks_->push_back(Block(options));
  initialise(*this, options);
}

at::Tensor GptImpl::forward(const at::Tensor& tokens) {
  auto x = tokens_(tokens);
  const auto rotations = rotations_.slice(1, 0, tokens.size(1));
  for (auto& block : *blocks_) x = block->as<Block>()->forward(x, rotations);
  return at::linear(norm_(x), tokens_->weight);
}

at::Tensor GptImpl::next_token(const at::Tensor& tokens, const at::Tensor& padding, Cache& cache) {
  cache.layers.resize(blocks_->size());
  const auto before = cache.time(), all = before + tokens.size(1);
  const auto columns = at::arange(all, tokens.options());
  const auto rows = columns.slice(0, before).view({-1, 1});
  const auto first = padding.view({-1, 1, 1, 1});
  // Padding attends to itself only: softmax over no element is undefined.
  const auto mask = (columns <= rows) & ((columns >= first) | (columns == rows));
  const auto positions = (rows.view({1, -1}) - padding.view({-1, 1})).clamp_min(0);
  const auto rotations =
      rotations_.index_select(1, positions.flatten()).view({2, tokens.size(0), 1, tokens.size(1), -1});

  auto x = tokens_(tokens);
  for (std::size_t i = 0; i < cache.layers.size(); ++i)
    x = blocks_->at<BlockImpl>(i).forward_cached(x, rotations, mask, cache.layers[i]);
  return at::linear(norm_(x.select(1, -1)), tokens_->weight);
}

std::int64_t GptImpl::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& parameter : parameters()) count += parameter.numel();
  return count;
}

}  // namespace gpt

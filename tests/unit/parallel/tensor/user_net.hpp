#pragma once

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/utils.h>

#include <cmath>
#include <utility>

#include "unit/parallel/tensor/tensor_fixture.hpp"

/// A user's transformer that knows nothing of tensor parallelism, in several styles of writing it.
namespace hortator::test::user_net {

inline constexpr std::int64_t width = 32, heads = 4, vocabulary = 24, batch = 2, length = 8;

/// How a user writes attention.
enum class Style { fused_view, fused_chunk, separate, multihead };

class UserAttentionImpl : public torch::nn::Module {
 public:
  explicit UserAttentionImpl(Style style) : style_(style) {
    if (style == Style::multihead) {
      multihead_ = register_module("multihead", torch::nn::MultiheadAttention(width, heads));
      return;
    }
    if (style == Style::separate) {
      q_ = register_module("q", torch::nn::Linear(width, width));
      k_ = register_module("k", torch::nn::Linear(width, width));
      v_ = register_module("v", torch::nn::Linear(torch::nn::LinearOptions(width, width).bias(false)));
      norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width / heads})));
    } else {
      qkv_ = register_module("qkv", torch::nn::Linear(width, 3 * width));
    }
    out_ = register_module("out", torch::nn::Linear(width, width));
  }

  at::Tensor forward(const at::Tensor& x) {
    const auto b = x.size(0), t = x.size(1);
    if (style_ == Style::multihead) {
      const auto y = x.transpose(0, 1);
      const auto mask = at::full({t, t}, -1e9).triu(1);
      return std::get<0>(multihead_(y, y, y, at::Tensor(), false, mask)).transpose(0, 1);
    }
    if (style_ == Style::fused_view) {
      const auto qkv = qkv_(x).view({b, t, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
      const auto y = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {}, 0, true);
      return out_(y.transpose(1, 2).contiguous().view({b, t, width}));
    }
    if (style_ == Style::fused_chunk) {
      const auto parts = qkv_(x).chunk(3, -1);
      return out_(by_hand(split(parts[0]), split(parts[1]), split(parts[2])).transpose(1, 2).reshape({b, t, -1}));
    }
    const auto q = norm_(split(q_(x))), k = norm_(split(k_(x)));
    return out_(by_hand(q, k, split(v_(x))).transpose(1, 2).flatten(2));
  }

 private:
  static at::Tensor split(const at::Tensor& x) {
    return x.view({x.size(0), x.size(1), -1, width / heads}).transpose(1, 2);
  }
  static at::Tensor by_hand(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    auto scores = q.matmul(k.transpose(-2, -1)) / std::sqrt(static_cast<double>(q.size(-1)));
    scores = scores.masked_fill(at::ones({q.size(-2), q.size(-2)}, at::kBool).triu(1), -1e9);
    return at::softmax(scores, -1).matmul(v);
  }

  Style style_;
  torch::nn::Linear qkv_ = nullptr, q_ = nullptr, k_ = nullptr, v_ = nullptr, out_ = nullptr;
  torch::nn::LayerNorm norm_ = nullptr;
  torch::nn::MultiheadAttention multihead_ = nullptr;
};
TORCH_MODULE(UserAttention);

class UserNetImpl : public torch::nn::Module {
 public:
  explicit UserNetImpl(Style style) {
    tokens = register_module("tokens", torch::nn::Embedding(vocabulary, width));
    const at::NoGradGuard no_grad;
    tokens->weight.mul_(0.02);  // scores of a size as in real models
    for (int i = 0; i < 2; ++i) {
      attention->push_back(UserAttention(style));
      norms->push_back(torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
      norms->push_back(torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
      up->push_back(torch::nn::Linear(width, 4 * width));
      down->push_back(torch::nn::Linear(4 * width, width));
    }
    for (const auto& [name, list] : {std::pair{"attention", attention}, {"norms", norms}, {"up", up}, {"down", down}})
      register_module(name, list);
  }

  at::Tensor forward(const at::Tensor& ids) {
    auto x = tokens(ids);
    for (std::size_t i = 0; i < 2; ++i) {
      x = x + attention[i]->as<UserAttention>()->forward(norms[2 * i]->as<torch::nn::LayerNorm>()->forward(x));
      const auto y = up[i]->as<torch::nn::Linear>()->forward(norms[2 * i + 1]->as<torch::nn::LayerNorm>()->forward(x));
      x = x + down[i]->as<torch::nn::Linear>()->forward(at::gelu(y));
    }
    return at::matmul(x, tokens->weight.t());
  }

  torch::nn::Embedding tokens = nullptr;
  torch::nn::ModuleList attention, norms, up, down;
};
TORCH_MODULE(UserNet);

inline TensorPlan plan_for(Style style, bool divides_sequence = false) {
  using enum TensorDivision;
  TensorPlan plan = {{"tokens", TensorDivision::vocabulary}, {"up.*", columns}, {"down.*", rows}};
  if (divides_sequence) plan.push_back({"norms.*", TensorDivision::sequence});
  if (style == Style::multihead) {
    plan.push_back({.pattern = "multihead", .division = columns, .blocks = 3});
    plan.push_back({"multihead.out_proj", rows});
    return plan;
  }
  if (style == Style::separate) {
    for (const auto* name : {"q", "k", "v"}) plan.push_back({name, columns});
  } else {
    plan.push_back({.pattern = "qkv", .division = columns, .blocks = 3});
  }
  plan.push_back({"out", rows});
  return plan;
}

inline UserNet net_of(Style style) {
  torch::manual_seed(7);
  return UserNet(style);
}

struct Step {
  at::Tensor ids, targets;
  explicit Step(std::int64_t number) {
    const auto all = at::arange(batch * length, at::kLong) * (3 + number);
    ids = all.remainder(vocabulary).view({batch, length});
    targets = (all + number + 1).remainder(vocabulary);
  }
  template <typename Net>
  at::Tensor loss(Net& net) const {
    return torch::nn::functional::cross_entropy(net->forward(ids).view({-1, vocabulary}), targets);
  }
};

}  // namespace hortator::test::user_net

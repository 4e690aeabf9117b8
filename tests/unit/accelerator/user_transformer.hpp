#pragma once

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/utils.h>

#include <hortator/hortator.hpp>
#include <memory>
#include <string>

#include "unit/accelerator/tensor/tensor_models.hpp"

namespace hortator::test {

/// A transformer as a user writes one, with the plan by which it is divided: fused queries, keys and values, and an
/// embedding that is tied to the scores.
class UserTransformer final : public torch::nn::Module, public HasTensorPlan {
 public:
  static constexpr std::int64_t width = 32, heads = 4, layers = 2;

  UserTransformer() {
    tokens_ = register_module("tokens", torch::nn::Embedding(tensor_vocabulary, width));
    {
      const at::NoGradGuard no_grad;
      tokens_->weight.mul_(0.02);
    }
    for (int i = 0; i < layers; ++i) {
      const auto layer = [&](const char* name, std::int64_t from, std::int64_t to) {
        return register_module(name + std::to_string(i), torch::nn::Linear(from, to));
      };
      norms_.push_back(
          register_module("norm" + std::to_string(i), torch::nn::LayerNorm(std::vector<std::int64_t>{width})));
      qkv_.push_back(layer("qkv", width, 3 * width));
      out_.push_back(layer("out", width, width));
      up_.push_back(layer("up", width, 4 * width));
      down_.push_back(layer("down", 4 * width, width));
    }
  }

  at::Tensor forward(const at::Tensor& ids) {
    auto x = tokens_(ids);
    for (std::size_t i = 0; i < layers; ++i) {
      x = x + out_[i](attention(qkv_[i](norms_[i](x))));
      x = x + down_[i](at::gelu(up_[i](x)));
    }
    return at::matmul(x, tokens_->weight.t());
  }

  at::Tensor operator()(const at::Tensor& ids) { return forward(ids); }

  TensorPlan tensor_plan() const override {
    using enum TensorDivision;
    return {{"tokens", TensorDivision::vocabulary},
            {.pattern = "qkv*", .division = columns, .blocks = 3},
            {"out*", rows},
            {"up*", columns},
            {"down*", rows}};
  }

 private:
  static at::Tensor attention(const at::Tensor& qkv) {
    const auto b = qkv.size(0), t = qkv.size(1);
    const auto all = qkv.view({b, t, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
    const auto y = at::scaled_dot_product_attention(all[0], all[1], all[2], {}, 0, true);
    return y.transpose(1, 2).contiguous().view({b, t, width});
  }

  torch::nn::Embedding tokens_ = nullptr;
  std::vector<torch::nn::LayerNorm> norms_;
  std::vector<torch::nn::Linear> qkv_, out_, up_, down_;
};

inline std::shared_ptr<UserTransformer> user_transformer() {
  torch::manual_seed(3);
  return std::make_shared<UserTransformer>();
}

}  // namespace hortator::test

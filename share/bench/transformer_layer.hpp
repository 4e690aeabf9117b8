#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "bench/workloads.hpp"

namespace hortator::bench {

torch::nn::LayerNorm layer_norm(std::int64_t width);

/// As PyTorch's Linear computes it. LibTorch's adds the bias in an operator of its own.
at::Tensor linear(const at::Tensor& x, const torch::nn::Linear& layer);

enum class Sight { both_ways, backwards };  ///< the tokens that attention sees

/// The building blocks of encoder and decoder layers: self-attention and a feed-forward net of four times the width,
/// without dropout. The model decides the order and the position of the norms.
struct TransformerLayer : Net {
  TransformerLayer(std::int64_t width, std::int64_t heads);

  at::Tensor attention(const at::Tensor& x, Sight sight);

  std::int64_t heads;
  torch::nn::Linear qkv;
  torch::nn::Linear out;
  torch::nn::Linear up;
  torch::nn::Linear down;
  torch::nn::LayerNorm norm_1;
  torch::nn::LayerNorm norm_2;
};

}  // namespace hortator::bench

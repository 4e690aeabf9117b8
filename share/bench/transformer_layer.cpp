#include "bench/transformer_layer.hpp"

#include <ATen/ops/linear.h>
#include <ATen/ops/scaled_dot_product_attention.h>

namespace hortator::bench {

torch::nn::LayerNorm layer_norm(std::int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
}

TransformerLayer::TransformerLayer(std::int64_t width, std::int64_t heads)
    : heads(heads),
      qkv(register_module("qkv", torch::nn::Linear(width, 3 * width))),
      out(register_module("out", torch::nn::Linear(width, width))),
      up(register_module("up", torch::nn::Linear(width, 4 * width))),
      down(register_module("down", torch::nn::Linear(4 * width, width))),
      norm_1(register_module("norm_1", layer_norm(width))),
      norm_2(register_module("norm_2", layer_norm(width))) {}

at::Tensor linear(const at::Tensor& x, const torch::nn::Linear& layer) {
  return at::linear(x, layer->weight, layer->bias);
}

at::Tensor TransformerLayer::attention(const at::Tensor& x, Sight sight) {
  const auto split = [&](const at::Tensor& part) { return part.unflatten(-1, {heads, -1}).transpose(1, 2); };
  const auto parts = linear(x, qkv).chunk(3, -1);
  const auto mixed = at::scaled_dot_product_attention(split(parts[0]), split(parts[1]), split(parts[2]),
                                                      /*attn_mask=*/{}, /*dropout_p=*/0, sight == Sight::backwards);
  return linear(mixed.transpose(1, 2).flatten(-2), out);
}

}  // namespace hortator::bench

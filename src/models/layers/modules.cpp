#include "models/layers/modules.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <hortator/nn/moe.hpp>

#include "models/layers/plain_tensor.hpp"

namespace hortator::models {
namespace {

// One call instead of seven operators, whose calls take longer than the arithmetic for the few rows of generation.
at::Tensor normalised(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  auto y = at::empty_like(x);
  const auto width = weight.numel();
  const auto* const factors = weight.const_data_ptr<float>();
  const auto* from = x.const_data_ptr<float>();
  auto* to = y.mutable_data_ptr<float>();
  for (std::int64_t row = 0; row < x.numel() / width; ++row, from += width, to += width) {
    double squares = 0;
    for (std::int64_t i = 0; i < width; ++i) squares += static_cast<double>(from[i]) * from[i];
    const auto scale = static_cast<float>(1 / std::sqrt(squares / static_cast<double>(width) + epsilon));
    for (std::int64_t i = 0; i < width; ++i) to[i] = from[i] * scale * factors[i];
  }
  return y;
}

}  // namespace

torch::nn::Module& module_at(torch::nn::Module& root, const std::string& path) {
  const auto point = path.find('.');
  const auto name = path.substr(0, point);
  const auto children = root.named_children();
  const auto* found = children.find(name);
  auto child = found != nullptr ? *found : root.register_module(name, std::make_shared<torch::nn::Module>());
  return point == std::string::npos ? *child : module_at(*child, path.substr(point + 1));
}

torch::nn::Linear linear(std::int64_t in, std::int64_t out, bool bias) {
  return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(bias));
}

torch::nn::Embedding embedding(std::int64_t rows, std::int64_t width, std::optional<std::int64_t> padding) {
  torch::nn::Embedding table(rows, width);
  if (padding && *padding >= 0 && *padding < rows) table->options.padding_idx(padding);
  return table;
}

torch::nn::LayerNorm layer_norm(std::int64_t width, double epsilon) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}).eps(epsilon));
}

RmsNormImpl::RmsNormImpl(std::int64_t width, double epsilon) : epsilon_(epsilon) {
  weight = register_parameter("weight", at::ones({width}));
}

at::Tensor RmsNormImpl::forward(const at::Tensor& x) const {
  const bool is_direct = is_plain_and_small(x) && is_plain(weight) && x.size(-1) == weight.numel();
  return is_direct ? normalised(x, weight, epsilon_) : at::rms_norm(x, weight.sizes(), weight, epsilon_);
}

Conv1DImpl::Conv1DImpl(std::int64_t in, std::int64_t out) {
  weight = register_parameter("weight", at::empty({in, out}).normal_(0, 0.02));
  bias = register_parameter("bias", at::zeros({out}));
}

at::Tensor Conv1DImpl::forward(const at::Tensor& x) const { return at::linear(x, weight.t(), bias); }

void initialise_normal(torch::nn::Module& module, double deviation) {
  const at::NoGradGuard no_grad;
  for (const auto& one : module.modules(/*include_self=*/true)) {
    if (auto* layer = one->as<torch::nn::Linear>()) {
      layer->weight.normal_(0, deviation);
      if (layer->bias.defined()) layer->bias.zero_();
    } else if (auto* table = one->as<torch::nn::Embedding>()) {
      table->weight.normal_(0, deviation);
    } else if (auto* experts = one->as<nn::Experts>()) {
      experts->gate_up_proj.normal_(0, deviation);
      experts->down_proj.normal_(0, deviation);
    } else if (auto* convolution = one->as<Conv1D>()) {
      convolution->weight.normal_(0, deviation);
    }
  }
}

}  // namespace hortator::models

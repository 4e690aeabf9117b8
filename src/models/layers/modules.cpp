#include "models/layers/modules.hpp"

#include <ATen/ATen.h>

#include <hortator/nn/moe.hpp>

namespace hortator::models {

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

at::Tensor RmsNormImpl::forward(const at::Tensor& x) const { return at::rms_norm(x, weight.sizes(), weight, epsilon_); }

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

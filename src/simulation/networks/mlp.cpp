#include "simulation/networks/mlp.hpp"

#include <ATen/ops/dropout.h>
#include <ATen/ops/linear.h>
#include <torch/nn/modules/container/modulelist.h>

namespace hortator::simulation {

Mlp::Mlp(const Section& section)
    : sizes_(section.integers("layers", 1)),
      activation_(read_activation(section, "activation", "relu")),
      output_activation_(read_activation(section, "output_activation", "none")),
      dropout_(section.number("dropout", 0)),
      flatten_(section.flag("flatten", false)) {
  if (sizes_.size() < 2)
    throw section.error("layers", "expected the sizes of input and output, and of hidden layers between them");
  if (!(dropout_ >= 0 && dropout_ < 1)) throw section.error("dropout", "expected a fraction from 0 to below 1");
  torch::nn::ModuleList list;
  for (std::size_t i = 0; i + 1 < sizes_.size(); ++i) {
    layers_.emplace_back(sizes_[i], sizes_[i + 1]);
    list->push_back(layers_.back());
  }
  register_module("layers", list);
}

std::optional<FeatureShape> Mlp::features() const {
  if (flatten_) return {};
  return FeatureShape{.dim = -1, .inputs = sizes_.front(), .outputs = sizes_.back()};
}

// The input of the last layer.
at::Tensor Mlp::hidden(const at::Tensor& input) {
  auto x = flatten_ && input.dim() > 1 ? input.flatten(1) : input;
  require_features(x, -1, sizes_.front(), 1);
  for (std::size_t i = 0; i + 1 < layers_.size(); ++i) {
    x = activation_.consume(layers_[i](x));
    if (dropout_ > 0) x = at::dropout(x, dropout_, is_training());
  }
  return x;
}

at::Tensor Mlp::compute(const at::Tensor& input) { return output_activation_.consume(layers_.back()(hidden(input))); }

// Without a hidden layer the input itself could lie in the output's memory.
bool Mlp::forward_into(const Tensors& inputs, const Tensors& outputs) {
  if (inputs.size() != 1 || outputs.size() != 1 || layers_.size() == 1) return false;
  const auto& weight = layers_.back()->weight;
  auto result = outputs.front();
  auto shape = inputs.front().sizes().vec();
  if (flatten_ || shape.empty()) return false;
  shape.back() = sizes_.back();
  if (result.sizes() != at::IntArrayRef(shape) || !result.is_contiguous() || result.device() != weight.device() ||
      result.scalar_type() != weight.scalar_type())
    return false;
  at::linear_out(result, hidden(inputs.front()), weight, layers_.back()->bias);
  output_activation_.consume(result);
  return true;
}

}  // namespace hortator::simulation

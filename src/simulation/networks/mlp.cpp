#include "simulation/networks/mlp.hpp"

#include <ATen/ops/dropout.h>
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

at::Tensor Mlp::compute(const at::Tensor& input) {
  auto x = flatten_ && input.dim() > 1 ? input.flatten(1) : input;
  require_features(x, -1, sizes_.front(), 1);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i](x);
    const bool is_last = i + 1 == layers_.size();
    x = is_last ? output_activation_(x) : activation_(x);
    if (!is_last && dropout_ > 0) x = at::dropout(x, dropout_, is_training());
  }
  return x;
}

}  // namespace hortator::simulation

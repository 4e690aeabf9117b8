#pragma once

#include <torch/nn/modules/linear.h>

#include <vector>

#include "simulation/networks/activation.hpp"
#include "simulation/networks/network.hpp"

namespace hortator::simulation {

/// Linear layers with an activation between them, on the last dimension of the input. Parameters are named
/// layers.0.weight, layers.0.bias, ...
class Mlp : public SingleNetwork {
 public:
  /// Keys: layers (the sizes of input, hidden layers and output), activation, output_activation, dropout, flatten.
  explicit Mlp(const Section& section);

  std::optional<FeatureShape> features() const override;
  bool forward_into(const Tensors& inputs, const Tensors& outputs) override;

 private:
  at::Tensor compute(const at::Tensor& input) override;
  at::Tensor hidden(const at::Tensor& input);

  std::vector<std::int64_t> sizes_;
  Activation activation_;
  Activation output_activation_;
  double dropout_;
  bool flatten_;  ///< all dimensions of a sample become one
  std::vector<torch::nn::Linear> layers_ = {};
};

}  // namespace hortator::simulation

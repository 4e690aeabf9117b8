#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/transformercoder.h>

#include "simulation/networks/network.hpp"
#include "simulation/sections/section.hpp"

namespace hortator::simulation {

/// A transformer encoder on sequences [batch, length, features].
class Transformer : public SingleNetwork {
 public:
  /// Keys: in_features, out_features, width, heads, depth, feedforward, dropout, positions (sinusoidal or none).
  explicit Transformer(const Section& section);

  std::optional<FeatureShape> features() const override { return FeatureShape{-1, inputs_, outputs_}; }

 private:
  at::Tensor compute(const at::Tensor& input) override;

  std::int64_t inputs_;
  std::int64_t outputs_;
  std::int64_t width_;
  bool has_positions_;
  torch::nn::Linear lift_{nullptr};
  torch::nn::TransformerEncoder encoder_{nullptr};
  torch::nn::Linear last_{nullptr};
};

}  // namespace hortator::simulation

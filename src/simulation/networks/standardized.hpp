#pragma once

#include <memory>

#include "simulation/networks/network.hpp"

namespace hortator::simulation {

/// Mean and scale of each feature.
struct FeatureScale {
  at::Tensor mean = {};
  at::Tensor scale = {};  ///< positive
};

/// A network whose inputs and outputs are standardised: it sees (input - mean) / scale, and its result is scaled back.
/// The numbers are buffers of the module, so that they are saved, exported and equal on all ranks.
class Standardized : public SingleNetwork {
 public:
  Standardized(std::shared_ptr<Network> network, FeatureShape shape);

  std::optional<FeatureShape> features() const override { return shape_; }
  /// Takes over new numbers. Throws UsageError if their count is not that of the features.
  void standardize(const FeatureScale& inputs, const FeatureScale& outputs);
  /// Whether it has other numbers than those with which it begins, which change nothing.
  bool has_numbers() const;
  /// Divides errors by the outputs' scale, so that a loss weighs all outputs alike.
  at::Tensor in_units(const at::Tensor& output) const;

 private:
  at::Tensor compute(const at::Tensor& input) override;
  at::Tensor along(const at::Tensor& numbers, const at::Tensor& field) const;

  std::shared_ptr<Network> network_;
  FeatureShape shape_;
  FeatureScale inputs_;
  FeatureScale outputs_;
};

}  // namespace hortator::simulation

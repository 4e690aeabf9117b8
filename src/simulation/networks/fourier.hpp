#pragma once

#include <vector>

#include "simulation/networks/activation.hpp"
#include "simulation/networks/convolution.hpp"
#include "simulation/networks/network.hpp"

namespace hortator::simulation {

/// Multiplies the lowest Fourier modes of each channel by a matrix; drops the others.
class SpectralImpl : public torch::nn::Module {
 public:
  /// `modes`: of each dimension; both signs of the frequency in all but the last.
  SpectralImpl(std::int64_t inputs, std::int64_t outputs, std::vector<std::int64_t> modes);
  at::Tensor forward(const at::Tensor& input) const;

 private:
  at::Tensor keep_lowest(at::Tensor spectrum) const;
  at::Tensor restore(at::Tensor lowest, at::IntArrayRef sizes) const;

  std::vector<std::int64_t> modes_;
  at::Tensor weight_;  ///< [inputs, outputs, modes, 2]: real and imaginary parts
};
TORCH_MODULE(Spectral);

/// A Fourier neural operator on periodic fields [batch, channels, ...] of 1 to 3 dimensions and any resolution.
class FourierOperator : public SingleNetwork {
 public:
  /// Keys: in_channels, out_channels, width, depth, modes (one number for each dimension), activation, coordinates
  /// (whether the position in the field is an input).
  explicit FourierOperator(const Section& section);

  std::optional<FeatureShape> features() const override { return FeatureShape{1, inputs_, outputs_}; }

 private:
  at::Tensor compute(const at::Tensor& input) override;
  void require_resolution(const at::Tensor& input) const;

  std::int64_t inputs_;
  std::int64_t outputs_;
  std::vector<std::int64_t> modes_;
  Activation activation_;
  bool has_coordinates_;
  Convolution lift_{nullptr};
  std::vector<Spectral> spectral_ = {};
  std::vector<Convolution> pointwise_ = {};
  Convolution hidden_{nullptr};
  Convolution last_{nullptr};
};

}  // namespace hortator::simulation

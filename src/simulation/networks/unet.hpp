#pragma once

#include <vector>

#include "simulation/networks/activation.hpp"
#include "simulation/networks/convolution.hpp"
#include "simulation/networks/network.hpp"

namespace hortator::simulation {

/// Two convolutions, each with an activation.
class UnetBlockImpl : public torch::nn::Module {
 public:
  UnetBlockImpl(ConvolutionImpl::Shape shape, Activation activation);
  at::Tensor forward(const at::Tensor& input);

 private:
  Activation activation_;
  Convolution first_{nullptr};
  Convolution second_{nullptr};
};
TORCH_MODULE(UnetBlock);

/// A convolutional U-Net on fields [batch, channels, ...] of 1 to 3 dimensions, whose sizes are multiples of 2^levels.
class Unet : public SingleNetwork {
 public:
  /// Keys: dims, in_channels, out_channels, width, levels, activation, boundary (zeros or periodic).
  explicit Unet(const Section& section);

  std::optional<FeatureShape> features() const override { return FeatureShape{1, inputs_, outputs_}; }

 private:
  at::Tensor compute(const at::Tensor& input) override;
  void require_sizes(const at::Tensor& input) const;
  at::Tensor halve(const at::Tensor& input) const;
  at::Tensor twice(at::Tensor input) const;

  std::int64_t dims_;
  std::int64_t inputs_;
  std::int64_t outputs_;
  std::int64_t levels_;
  std::vector<UnetBlock> down_ = {};
  UnetBlock bottom_{nullptr};
  std::vector<UnetBlock> up_ = {};  ///< from the top down, as down_
  Convolution last_{nullptr};
};

}  // namespace hortator::simulation

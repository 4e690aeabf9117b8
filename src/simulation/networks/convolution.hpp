#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

namespace hortator::simulation {

/// A convolution over 1, 2 or 3 dimensions that keeps their sizes. Its parameters start as torch's.
class ConvolutionImpl : public torch::nn::Module {
 public:
  struct Shape {
    std::int64_t dims = 2;
    std::int64_t inputs = 1;
    std::int64_t outputs = 1;
    std::int64_t kernel = 3;   ///< odd
    bool is_periodic = false;  ///< the boundary; zeros otherwise
  };
  explicit ConvolutionImpl(const Shape& shape);

  at::Tensor forward(const at::Tensor& input) const;

 private:
  Shape shape_;
  at::Tensor weight_;
  at::Tensor bias_;
};
TORCH_MODULE(Convolution);

}  // namespace hortator::simulation

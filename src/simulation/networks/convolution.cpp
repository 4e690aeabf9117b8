#include "simulation/networks/convolution.hpp"

#include <ATen/ops/convolution.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/pad.h>

#include <cmath>
#include <vector>

namespace hortator::simulation {

ConvolutionImpl::ConvolutionImpl(const Shape& shape) : shape_(shape) {
  std::vector<std::int64_t> sizes = {shape.outputs, shape.inputs};
  double fan_in = static_cast<double>(shape.inputs);
  for (std::int64_t i = 0; i < shape.dims; ++i) {
    sizes.push_back(shape.kernel);
    fan_in *= static_cast<double>(shape.kernel);
  }
  const double bound = 1 / std::sqrt(fan_in);
  weight_ = register_parameter("weight", at::empty(sizes).uniform_(-bound, bound));
  bias_ = register_parameter("bias", at::empty({shape.outputs}).uniform_(-bound, bound));
}

at::Tensor ConvolutionImpl::forward(const at::Tensor& input) const {
  const auto dims = static_cast<std::size_t>(shape_.dims);
  const auto half = shape_.kernel / 2;
  const bool wraps = shape_.is_periodic && half > 0;
  const auto x = wraps ? at::pad(input, std::vector<std::int64_t>(2 * dims, half), "circular") : input;
  const std::vector<std::int64_t> ones(dims, 1);
  const std::vector<std::int64_t> zeros(dims, 0);
  const std::vector<std::int64_t> padding(dims, wraps ? 0 : half);
  return at::convolution(x, weight_, bias_, ones, padding, ones, false, zeros, 1);
}

}  // namespace hortator::simulation

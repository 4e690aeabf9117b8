#pragma once

#include <torch/nn/module.h>

namespace hortator::test {

/// y = w * times: the gradient of w is the factor of the loss.
struct Weight : torch::nn::Module {
  Weight() { w = register_parameter("w", at::zeros({1})); }
  at::Tensor forward(double times) { return w * times; }
  at::Tensor w;
};

}  // namespace hortator::test

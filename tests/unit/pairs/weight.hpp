#pragma once

#include <torch/nn/module.h>

#include <hortator/hortator.hpp>

namespace hortator::test {

/// y = w * times: the gradient of w is the factor of the loss.
struct Weight : torch::nn::Module {
  Weight() { w = register_parameter("w", at::zeros({1})); }
  at::Tensor forward(double times) { return w * times; }
  at::Tensor w;
};

/// The training of one weight by an optimizer of this type.
template <typename Own>
struct WeightRun {
  WeightRun(const AcceleratorOptions& options, double rate) : accelerator(options), own(net.parameters(), rate) {}

  Accelerator accelerator;
  Weight net;
  Own own;
  Model<Weight> model = accelerator.prepare(net);
  Optimizer optimizer = accelerator.prepare(own);

  void step(double times) {
    accelerator.backward(model(times).sum());
    optimizer.step();
    optimizer.zero_grad();
  }
  double weight() const { return net.w.template item<double>(); }
};

}  // namespace hortator::test

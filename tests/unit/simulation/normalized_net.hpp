#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

/// A model of two inputs with running statistics.
class NormalizedNet : public torch::nn::Module {
 public:
  NormalizedNet() {
    norm_ = register_module("norm", torch::nn::BatchNorm1d(2));
    last_ = register_module("last", torch::nn::Linear(2, 1));
  }
  at::Tensor forward(const at::Tensor& input) { return last_(norm_(input)); }

 private:
  torch::nn::BatchNorm1d norm_{nullptr};
  torch::nn::Linear last_{nullptr};
};

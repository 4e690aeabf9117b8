#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <utility>
#include <vector>

namespace hortator::test {

/// A user's optimizer that may remember something, and saves nothing.
class Forgetful final : public torch::optim::Optimizer {
 public:
  explicit Forgetful(std::vector<at::Tensor> parameters)
      : Optimizer(std::move(parameters), std::make_unique<Options>()) {}
  at::Tensor step(LossClosure /*closure*/ = nullptr) override { return {}; }

 private:
  struct Options : torch::optim::OptimizerCloneableOptions<Options> {
    double get_lr() const override { return 0.1; }
    void set_lr(const double /*rate*/) override {}
  };
};

}  // namespace hortator::test

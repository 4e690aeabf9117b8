#pragma once

#include <hortator/training/named_optimizer.hpp>
#include <utility>
#include <vector>

namespace hortator::test {

/// A user's optimizer: the sign of the gradient, at a rate that falls with the parameter's step count.
class Signum final : public NamedOptimizer, public ElementwiseOptimizer {
 public:
  explicit Signum(std::vector<at::Tensor> parameters)
      : NamedOptimizer({torch::optim::OptimizerParamGroup(std::move(parameters))},
                       NamedOptions({{"lr", 0.01}}, {"momentum"}, {"rate"})) {}

 private:
  void update(at::Tensor& parameter, const at::Tensor& gradient, MomentState& state,
              const NamedOptions& options) override {
    auto& momentum = state.moments["momentum"].lerp_(gradient, 0.1);
    state.scalars["rate"] = options.get_lr() / static_cast<double>(state.step);
    parameter.sub_(momentum.sign(), state.scalars["rate"]);
  }
};

}  // namespace hortator::test

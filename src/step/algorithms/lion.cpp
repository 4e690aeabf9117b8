#include <ATen/ops/lerp.h>

#include <hortator/training/optimizers.hpp>

namespace hortator {

NamedOptions LionOptions::named() const {
  return NamedOptions({{"lr", lr}, {"beta1", betas[0]}, {"beta2", betas[1]}, {"weight_decay", weight_decay}},
                      {"exp_avg"});
}

Lion::Lion(const std::vector<torch::optim::OptimizerParamGroup>& groups, const LionOptions& defaults)
    : NamedOptimizer(groups, defaults.named()) {}

Lion::Lion(std::vector<at::Tensor> parameters, const LionOptions& defaults)
    : NamedOptimizer({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults.named()) {}

void Lion::update(at::Tensor& parameter, const at::Tensor& gradient, MomentState& state, const NamedOptions& options) {
  const double lr = options.get_lr();
  auto& mean = state.moments["exp_avg"];
  parameter.mul_(1 - lr * options.get("weight_decay"));
  parameter.sub_(mean.lerp(gradient, 1 - options.get("beta1")).sign_(), lr);
  mean.lerp_(gradient, 1 - options.get("beta2"));
}

}  // namespace hortator

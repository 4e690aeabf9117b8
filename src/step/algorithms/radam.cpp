#include <cmath>
#include <hortator/training/optimizers.hpp>

#include "step/algorithms/weight_decay.hpp"

namespace hortator {

NamedOptions RAdamOptions::named() const {
  return NamedOptions({{"lr", lr},
                       {"beta1", betas[0]},
                       {"beta2", betas[1]},
                       {"eps", eps},
                       {"weight_decay", weight_decay},
                       {"decoupled_weight_decay", decoupled_weight_decay ? 1.0 : 0.0}},
                      {"exp_avg", "exp_avg_sq"});
}

RAdam::RAdam(const std::vector<torch::optim::OptimizerParamGroup>& groups, const RAdamOptions& defaults)
    : NamedOptimizer(groups, defaults.named()) {}

RAdam::RAdam(std::vector<at::Tensor> parameters, const RAdamOptions& defaults)
    : NamedOptimizer({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults.named()) {}

// The paper's names: rho is the length of the moving average, which must be above 5 for its variance to be finite.
void RAdam::update(at::Tensor& parameter, const at::Tensor& gradient, MomentState& state, const NamedOptions& options) {
  const double beta1 = options.get("beta1");
  const double beta2 = options.get("beta2");
  const auto step = static_cast<double>(state.step);
  const auto decayed = step::decay_weights(parameter, gradient, options);
  auto& mean = state.moments["exp_avg"].lerp_(decayed, 1 - beta1);
  auto& square = state.moments["exp_avg_sq"].mul_(beta2).addcmul_(decayed, decayed, 1 - beta2);

  const double lr = options.get_lr() / (1 - std::pow(beta1, step));
  const double correction = 1 - std::pow(beta2, step);
  const double rho_limit = 2 / (1 - beta2) - 1;
  const double rho = rho_limit - 2 * step * std::pow(beta2, step) / correction;
  if (rho <= 5) {
    parameter.sub_(mean, lr);
    return;
  }
  const double rectification = std::sqrt((rho - 4) * (rho - 2) * rho_limit / ((rho_limit - 4) * (rho_limit - 2) * rho));
  parameter.addcdiv_(mean, square.sqrt().add_(options.get("eps")), -lr * rectification * std::sqrt(correction));
}

}  // namespace hortator

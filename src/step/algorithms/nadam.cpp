#include <ATen/ops/addcdiv.h>
#include <ATen/ops/addcmul.h>

#include <cmath>
#include <hortator/training/optimizers.hpp>

#include "step/algorithms/weight_decay.hpp"

namespace hortator {

NamedOptions NAdamOptions::named() const {
  return NamedOptions({{"lr", lr},
                       {"beta1", betas[0]},
                       {"beta2", betas[1]},
                       {"eps", eps},
                       {"weight_decay", weight_decay},
                       {"momentum_decay", momentum_decay},
                       {"decoupled_weight_decay", decoupled_weight_decay ? 1.0 : 0.0}},
                      {"exp_avg", "exp_avg_sq"}, {"mu_product"});
}

NAdam::NAdam(const std::vector<torch::optim::OptimizerParamGroup>& groups, const NAdamOptions& defaults)
    : NamedOptimizer(groups, defaults.named()) {}

NAdam::NAdam(std::vector<at::Tensor> parameters, const NAdamOptions& defaults)
    : NamedOptimizer({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults.named()) {}

void NAdam::update(at::Tensor& parameter, const at::Tensor& gradient, MomentState& state, const NamedOptions& options) {
  const double lr = options.get_lr();
  const double beta1 = options.get("beta1");
  const double beta2 = options.get("beta2");
  const auto momentum_at = [&](double step) {
    return beta1 * (1 - 0.5 * std::pow(0.96, step * options.get("momentum_decay")));
  };
  const auto step = static_cast<double>(state.step);
  const double momentum = momentum_at(step);
  const double next = momentum_at(step + 1);
  auto& product = state.scalars.try_emplace("mu_product", 1).first->second;
  product *= momentum;

  const auto decayed = step::decay_weights(parameter, gradient, options);
  auto& mean = state.moments["exp_avg"].lerp_(decayed, 1 - beta1);
  auto& square = state.moments["exp_avg_sq"].mul_(beta2).addcmul_(decayed, decayed, 1 - beta2);
  const auto scale = square.div(1 - std::pow(beta2, step)).sqrt_().add_(options.get("eps"));
  parameter.addcdiv_(decayed, scale, -lr * (1 - momentum) / (1 - product));
  parameter.addcdiv_(mean, scale, -lr * next / (1 - product * next));
}

}  // namespace hortator

#include <cmath>
#include <hortator/training/optimizers.hpp>

#include "step/algorithms/byte_codes.hpp"

namespace hortator {

NamedOptions AdamW8bitOptions::named() const {
  return NamedOptions(
      {{"lr", lr}, {"beta1", betas[0]}, {"beta2", betas[1]}, {"eps", eps}, {"weight_decay", weight_decay}},
      {"bytes/exp_avg", "blocks/exp_avg", "bytes/exp_avg_sq", "blocks/exp_avg_sq"});
}

AdamW8bit::AdamW8bit(const std::vector<torch::optim::OptimizerParamGroup>& groups, const AdamW8bitOptions& defaults)
    : SlicedOptimizer(groups, defaults.named()) {}

AdamW8bit::AdamW8bit(std::vector<at::Tensor> parameters, const AdamW8bitOptions& defaults)
    : SlicedOptimizer({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults.named()) {}

// One parameter's moments at a time are in fp32.
void AdamW8bit::step_parameters(std::vector<SteppedParameter>& parameters, const NamedOptions& options,
                                const ParameterSlices& /*slices*/) {
  const double beta1 = options.get("beta1"), beta2 = options.get("beta2");
  for (auto& [parameter, given, state, slice] : parameters) {
    const auto& of_means = step::ByteCodes::of(/*is_signed=*/true, parameter.device());
    const auto& of_squares = step::ByteCodes::of(/*is_signed=*/false, parameter.device());
    const auto gradient = given.reshape({-1}).to(at::kFloat);
    auto& moments = state.moments;
    auto mean = of_means.restore(moments["bytes/exp_avg"], moments["blocks/exp_avg"]).lerp_(gradient, 1 - beta1);
    auto square = of_squares.restore(moments["bytes/exp_avg_sq"], moments["blocks/exp_avg_sq"])
                      .mul_(beta2)
                      .addcmul_(gradient, gradient, 1 - beta2);
    of_means.store(mean, moments["bytes/exp_avg"], moments["blocks/exp_avg"]);
    of_squares.store(square, moments["bytes/exp_avg_sq"], moments["blocks/exp_avg_sq"]);
    const auto step = static_cast<double>(state.step);
    const auto scale = square.div_(1 - std::pow(beta2, step)).sqrt_().add_(options.get("eps"));
    parameter.mul_(1 - options.get_lr() * options.get("weight_decay"));
    parameter.sub_(mean.div_(scale).view(parameter.sizes()), options.get_lr() / (1 - std::pow(beta1, step)));
  }
}

}  // namespace hortator

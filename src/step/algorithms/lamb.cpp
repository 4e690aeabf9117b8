#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <hortator/training/optimizers.hpp>

namespace hortator {
namespace {

at::Tensor lamb_direction(const at::Tensor& parameter, const MomentState& state, const NamedOptions& options) {
  const auto step = static_cast<double>(state.step);
  const auto& mean = state.moments.find("exp_avg")->second;
  const auto& square = state.moments.find("exp_avg_sq")->second;
  const auto scale = square.div(1 - std::pow(options.get("beta2"), step)).sqrt_().add_(options.get("eps"));
  return mean.div(1 - std::pow(options.get("beta1"), step)).div_(scale).add_(parameter, options.get("weight_decay"));
}

}  // namespace

NamedOptions LambOptions::named() const {
  return NamedOptions(
      {{"lr", lr}, {"beta1", betas[0]}, {"beta2", betas[1]}, {"eps", eps}, {"weight_decay", weight_decay}},
      {"exp_avg", "exp_avg_sq"});
}

Lamb::Lamb(const std::vector<torch::optim::OptimizerParamGroup>& groups, const LambOptions& defaults)
    : SlicedOptimizer(groups, defaults.named()) {}

Lamb::Lamb(std::vector<at::Tensor> parameters, const LambOptions& defaults)
    : SlicedOptimizer({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults.named()) {}

// Directions are computed twice instead of kept: together they are as large as the parameters.
void Lamb::step_parameters(std::vector<SteppedParameter>& parameters, const NamedOptions& options,
                           const ParameterSlices& slices) {
  std::vector<at::Tensor> squares;
  for (auto& [parameter, gradient, state, slice] : parameters) {
    state.moments["exp_avg"].lerp_(gradient, 1 - options.get("beta1"));
    state.moments["exp_avg_sq"].mul_(options.get("beta2")).addcmul_(gradient, gradient, 1 - options.get("beta2"));
    const auto direction = lamb_direction(parameter, state, options);
    const auto both = at::stack({parameter.square().sum(at::kDouble), direction.square().sum(at::kDouble)});
    squares.push_back(slice.counts ? both : at::zeros_like(both));
  }
  auto norms = at::stack(squares);
  slices.sum(norms);
  const auto of_parameters = norms.select(1, 0).sqrt();
  const auto of_directions = norms.select(1, 1).sqrt();
  const auto ratios = at::where((of_parameters > 0).logical_and(of_directions > 0), of_parameters / of_directions,
                                at::ones_like(of_parameters));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    auto& parameter = parameters[i].parameter;
    const auto ratio = ratios[static_cast<std::int64_t>(i)].to(parameter.scalar_type());
    parameter.addcmul_(lamb_direction(parameter, parameters[i].state, options), ratio, -options.get_lr());
  }
}

}  // namespace hortator

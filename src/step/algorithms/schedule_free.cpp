#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>
#include <hortator/training/optimizers.hpp>

#include "core/text/text.hpp"

namespace hortator {

// "step", "weight_sum" and "lr_max" are what the group remembers; "scheduled_lr" and "share" are those of this step.
NamedOptions ScheduleFreeAdamWOptions::named() const {
  return NamedOptions({{"lr", lr},
                       {"beta1", betas[0]},
                       {"beta2", betas[1]},
                       {"eps", eps},
                       {"weight_decay", weight_decay},
                       {"warmup_steps", warmup_steps},
                       {"r", r},
                       {"weight_lr_power", weight_lr_power},
                       {"step", 0},
                       {"weight_sum", 0},
                       {"lr_max", -1},
                       {"scheduled_lr", 0},
                       {"share", 0},
                       {"trains", 1}},
                      {"z", "exp_avg_sq"});
}

namespace {

const NamedOptions& with_checked_betas(const NamedOptions& options) {
  const double beta1 = options.get("beta1"), beta2 = options.get("beta2");
  if (beta1 > 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1) return options;
  throw UsageError({.what = text::concat("Schedule-free betas are ", beta1, " and ", beta2),
                    .why = "the weights to evaluate are those to train, extrapolated by 1 / the first beta; the second "
                           "one is the weight of past squares",
                    .hint = "use a first beta above 0 and below 1, and a second one from 0 and below 1"});
}

}  // namespace

ScheduleFreeAdamW::ScheduleFreeAdamW(const std::vector<torch::optim::OptimizerParamGroup>& groups,
                                     const ScheduleFreeAdamWOptions& defaults)
    : NamedOptimizer(groups, with_checked_betas(defaults.named())) {}

ScheduleFreeAdamW::ScheduleFreeAdamW(std::vector<at::Tensor> parameters, const ScheduleFreeAdamWOptions& defaults)
    : NamedOptimizer({torch::optim::OptimizerParamGroup(std::move(parameters))}, with_checked_betas(defaults.named())) {
}

void ScheduleFreeAdamW::begin_group(NamedOptions& options) {
  if (options.get("trains") == 0) {
    throw UsageError({.what = "A schedule-free optimizer steps after eval()",
                      .why = "the parameters hold the weights to evaluate, not those to train",
                      .hint = "call optimizer.train() before the next step"});
  }
  with_checked_betas(options);
  const double step = options.get("step") + 1;
  const double warmup = options.get("warmup_steps");
  const double lr = options.get_lr() * (step < warmup ? step / warmup : 1);
  const double lr_max = std::max(lr, options.get("lr_max"));
  const double weight = std::pow(step, options.get("r")) * std::pow(lr_max, options.get("weight_lr_power"));
  const double sum = options.get("weight_sum") + weight;
  options.set("step", step);
  options.set("lr_max", lr_max);
  options.set("weight_sum", sum);
  options.set("scheduled_lr", lr);
  options.set("share", sum > 0 ? weight / sum : 0);
}

void ScheduleFreeAdamW::update(at::Tensor& parameter, const at::Tensor& gradient, MomentState& state,
                               const NamedOptions& options) {
  const double beta2 = options.get("beta2");
  const double lr = options.get("scheduled_lr");
  const double share = options.get("share");
  auto& z = state.moments["z"];
  if (state.step == 1) z.copy_(parameter);
  auto& square = state.moments["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, 1 - beta2);
  const auto scale = square.div(1 - std::pow(beta2, options.get("step"))).sqrt_().add_(options.get("eps"));
  const auto direction = gradient.div(scale).add_(parameter, options.get("weight_decay"));
  parameter.lerp_(z, share);
  parameter.add_(direction, lr * (options.get("beta1") * (1 - share) - 1));
  z.sub_(direction, lr);
}

void ScheduleFreeAdamW::train() { move(true); }
void ScheduleFreeAdamW::eval() { move(false); }

void ScheduleFreeAdamW::move(bool to_training) {
  const at::NoGradGuard no_grad;
  for (auto& group : param_groups()) {
    auto& options = dynamic_cast<NamedOptions&>(group.options());
    if ((options.get("trains") != 0) == to_training) continue;
    const double beta1 = with_checked_betas(options).get("beta1");
    options.set("trains", to_training ? 1 : 0);
    for (auto& parameter : group.params()) {
      const auto found = state().find(parameter.unsafeGetTensorImpl());
      if (found == state().end()) continue;
      parameter.lerp_(static_cast<MomentState&>(*found->second).moments["z"], to_training ? 1 - beta1 : 1 - 1 / beta1);
    }
  }
}

}  // namespace hortator

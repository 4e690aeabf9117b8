#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>
#include <hortator/training/schedules.hpp>
#include <numbers>

#include "core/text/text.hpp"
#include "step/schedule/course_schedule.hpp"

namespace hortator {
namespace {

void check_positive(std::int64_t steps, const char* option) {
  if (steps > 0) return;
  throw UsageError({.what = text::concat(option, " is ", steps),
                    .why = "it is the number of steps after which the rate changes",
                    .hint = "use at least one step"});
}

double power(double gamma, std::int64_t times) { return std::pow(gamma, static_cast<double>(times)); }

}  // namespace

Schedule step_lr(torch::optim::Optimizer& optimizer, const StepLr& options) {
  check_positive(options.step_size, "step_lr's step_size");
  const auto factor = [options](std::int64_t step) { return power(options.gamma, step / options.step_size); };
  return step::make_schedule(
      optimizer, step::course_by_factor("step_lr", factor, {{"the first change comes", options.step_size}}));
}

Schedule multi_step_lr(torch::optim::Optimizer& optimizer, const MultiStepLr& options) {
  auto steps = options.milestones;
  std::sort(steps.begin(), steps.end());
  std::vector<step::Milestone> milestones;
  if (!steps.empty()) milestones = {{"the first change comes", steps.front()}, {"the last", steps.back()}};
  const auto factor = [steps = std::move(steps), gamma = options.gamma](std::int64_t step) {
    return power(gamma, std::upper_bound(steps.begin(), steps.end(), step) - steps.begin());
  };
  return step::make_schedule(optimizer, step::course_by_factor("multi_step_lr", factor, std::move(milestones)));
}

Schedule exponential_lr(torch::optim::Optimizer& optimizer, const ExponentialLr& options) {
  const auto factor = [gamma = options.gamma](std::int64_t step) { return power(gamma, step); };
  return step::make_schedule(optimizer, step::course_by_factor("exponential_lr", factor));
}

Schedule cosine_annealing(torch::optim::Optimizer& optimizer, const CosineAnnealing& options) {
  check_positive(options.half_period, "cosine_annealing's half_period");
  const auto setting = [options](std::size_t, double base_lr, std::int64_t step) {
    const double angle = std::numbers::pi * static_cast<double>(step) / static_cast<double>(options.half_period);
    return step::GroupSetting{.lr = options.eta_min + (base_lr - options.eta_min) * (1 + std::cos(angle)) / 2};
  };
  return step::make_schedule(
      optimizer,
      {.name = "cosine_annealing", .setting = setting, .milestones = {{"the lowest rate comes", options.half_period}}});
}

}  // namespace hortator

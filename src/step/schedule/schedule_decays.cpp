#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>
#include <hortator/training/schedules.hpp>

#include "core/text/text.hpp"
#include "step/schedule/courses.hpp"

namespace hortator::step {
namespace {

void check_positive(std::int64_t steps, const char* option) {
  if (steps > 0) return;
  throw UsageError({.what = text::concat(option, " is ", steps),
                    .why = "it is the number of steps after which the rate changes",
                    .hint = "use at least one step"});
}

double power(double gamma, std::int64_t times) { return std::pow(gamma, static_cast<double>(times)); }

/// How much of `total` has passed, from 0 to 1.
double fraction(std::int64_t step, std::int64_t total) {
  return static_cast<double>(std::min(step, total)) / static_cast<double>(total);
}

}  // namespace

Course course_of(const StepLr& options) {
  check_positive(options.step_size, "step_lr's step_size");
  const auto factor = [options](std::int64_t step) { return power(options.gamma, step / options.step_size); };
  return course_by_factor("step_lr", factor, {{"the first change comes", options.step_size}});
}

Course course_of(const MultiStepLr& options) {
  auto steps = options.milestones;
  std::sort(steps.begin(), steps.end());
  std::vector<Milestone> milestones;
  if (!steps.empty()) milestones = {{"the first change comes", steps.front()}, {"the last", steps.back()}};
  const auto factor = [steps = std::move(steps), gamma = options.gamma](std::int64_t step) {
    return power(gamma, std::upper_bound(steps.begin(), steps.end(), step) - steps.begin());
  };
  return course_by_factor("multi_step_lr", factor, std::move(milestones));
}

Course course_of(const ExponentialLr& options) {
  const auto factor = [gamma = options.gamma](std::int64_t step) { return power(gamma, step); };
  return course_by_factor("exponential_lr", factor);
}

Course course_of(const ConstantLr& options) {
  check_positive(options.total_steps, "constant_lr's total_steps");
  const auto factor = [options](std::int64_t step) { return step < options.total_steps ? options.factor : 1.0; };
  return course_by_factor("constant_lr", factor, {{"the full rate comes", options.total_steps}});
}

Course course_of(const LinearLr& options) {
  check_positive(options.total_steps, "linear_lr's total_steps");
  const auto factor = [options](std::int64_t step) {
    const auto progress = fraction(step, options.total_steps);
    return options.start_factor + (options.end_factor - options.start_factor) * progress;
  };
  return course_by_factor("linear_lr", factor, {{"the last change comes", options.total_steps}});
}

Course course_of(const PolynomialLr& options) {
  check_positive(options.total_steps, "polynomial_lr's total_steps");
  const auto factor = [options](std::int64_t step) {
    return std::pow(1 - fraction(step, options.total_steps), options.power);
  };
  return course_by_factor("polynomial_lr", factor, {{"the rate is 0", options.total_steps}});
}

}  // namespace hortator::step

namespace hortator {

Schedule step_lr(torch::optim::Optimizer& optimizer, const StepLr& options) {
  return step::make_schedule(optimizer, step::course_of(options));
}
Schedule multi_step_lr(torch::optim::Optimizer& optimizer, const MultiStepLr& options) {
  return step::make_schedule(optimizer, step::course_of(options));
}
Schedule exponential_lr(torch::optim::Optimizer& optimizer, const ExponentialLr& options) {
  return step::make_schedule(optimizer, step::course_of(options));
}
Schedule constant_lr(torch::optim::Optimizer& optimizer, const ConstantLr& options) {
  return step::make_schedule(optimizer, step::course_of(options));
}
Schedule linear_lr(torch::optim::Optimizer& optimizer, const LinearLr& options) {
  return step::make_schedule(optimizer, step::course_of(options));
}
Schedule polynomial_lr(torch::optim::Optimizer& optimizer, const PolynomialLr& options) {
  return step::make_schedule(optimizer, step::course_of(options));
}

}  // namespace hortator

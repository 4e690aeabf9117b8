#include <cmath>
#include <cstdint>
#include <hortator/error.hpp>
#include <hortator/training/schedules.hpp>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "core/text/text.hpp"
#include "step/schedule/courses.hpp"

namespace hortator::step {
namespace {

/// A course along `height`, which is 1 at the full rate and 0 at eta_min.
Course between(std::string name, double eta_min, std::function<double(std::int64_t)> height,
               std::vector<Milestone> milestones) {
  if (eta_min == 0) return course_by_factor(std::move(name), std::move(height), std::move(milestones));
  const auto setting = [eta_min, height = std::move(height)](std::size_t, double base_lr, std::int64_t step) {
    return GroupSetting{.lr = eta_min + (base_lr - eta_min) * height(step)};
  };
  return {.name = std::move(name), .setting = setting, .milestones = std::move(milestones)};
}

double cosine(double half_periods) { return (1 + std::cos(std::numbers::pi * half_periods)) / 2; }

/// A period of warm restarts.
struct RestartPosition {
  std::int64_t since = 0;   ///< steps since it began
  std::int64_t length = 0;  ///< its steps
};

RestartPosition position(const CosineWarmRestarts& options, std::int64_t step) {
  if (options.factor == 1) return {.since = step % options.first_period, .length = options.first_period};
  RestartPosition at{.since = step, .length = options.first_period};
  while (at.since >= at.length) {
    at.since -= at.length;
    at.length *= options.factor;
  }
  return at;
}

}  // namespace

Course course_of(const CosineAnnealing& options) {
  if (options.half_period <= 0) {
    throw UsageError({.what = text::concat("cosine_annealing's half_period is ", options.half_period),
                      .why = "it is the number of steps after which the rate changes",
                      .hint = "use at least one step"});
  }
  const auto height = [half_period = options.half_period](std::int64_t step) {
    return cosine(static_cast<double>(step) / static_cast<double>(half_period));
  };
  return between("cosine_annealing", options.eta_min, height, {{"the lowest rate comes", options.half_period}});
}

Course course_of(const CosineWarmRestarts& options) {
  if (options.first_period <= 0 || options.factor < 1) {
    throw UsageError({.what = text::concat("cosine_warm_restarts got first_period = ", options.first_period,
                                           " and factor = ", options.factor),
                      .why = "each period is factor times as long as the one before",
                      .hint = "use a first period of at least one step, and a factor from 1"});
  }
  const auto height = [options](std::int64_t step) {
    const auto [since, length] = position(options, step);
    return cosine(static_cast<double>(since) / static_cast<double>(length));
  };
  return between("cosine_warm_restarts", options.eta_min, height, {{"the first restart comes", options.first_period}});
}

}  // namespace hortator::step

namespace hortator {

Schedule cosine_annealing(torch::optim::Optimizer& optimizer, const CosineAnnealing& options) {
  return step::make_schedule(optimizer, step::course_of(options));
}
Schedule cosine_warm_restarts(torch::optim::Optimizer& optimizer, const CosineWarmRestarts& options) {
  return step::make_schedule(optimizer, step::course_of(options));
}

}  // namespace hortator

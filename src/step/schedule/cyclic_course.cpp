#include <cmath>
#include <cstdint>
#include <hortator/error.hpp>
#include <hortator/training/schedules.hpp>

#include "core/text/text.hpp"
#include "step/schedule/courses.hpp"

namespace hortator::step {
namespace {

/// A step within its cycle.
struct CyclePoint {
  double cycle = 1;   ///< its number, from 1
  double height = 0;  ///< 0 at the base, 1 at the peak
};

CyclePoint point(const CyclicLr& options, std::int64_t step) {
  const auto up = static_cast<double>(options.step_size_up);
  const auto total = up + static_cast<double>(options.step_size_down.value_or(options.step_size_up));
  const double cycle = std::floor(1 + static_cast<double>(step) / total);
  const double progress = 1 + static_cast<double>(step) / total - cycle;
  const double rise = up / total;
  return {.cycle = cycle, .height = progress <= rise ? progress / rise : (progress - 1) / (rise - 1)};
}

double amplitude(const CyclicLr& options, double cycle, std::int64_t step) {
  switch (options.mode) {
    case CycleMode::triangular:
      return 1;
    case CycleMode::triangular2:
      return std::pow(2, 1 - cycle);
    case CycleMode::exp_range:
      return std::pow(options.gamma, static_cast<double>(step));
  }
  return 1;
}

void check(const CyclicLr& options, torch::optim::Optimizer& optimizer) {
  if (options.step_size_up <= 0 || options.step_size_down.value_or(1) <= 0) {
    throw UsageError(
        {.what = text::concat("cyclic_lr got step_size_up = ", options.step_size_up,
                              " and step_size_down = ", options.step_size_down.value_or(options.step_size_up)),
         .why = "they are the steps in which the rate rises and falls",
         .hint = "use at least one step for each"});
  }
  const auto groups = optimizer.param_groups().size();
  options.base_lr.check(groups, "base_lr");
  options.max_lr.check(groups, "max_lr");
  options.base_momentum.check(groups, "base_momentum");
  options.max_momentum.check(groups, "max_momentum");
  if (options.cycle_momentum) require_momentum(optimizer, "cyclic_lr");
}

}  // namespace

Course course_of(const CyclicLr& options, torch::optim::Optimizer& optimizer) {
  check(options, optimizer);
  const auto setting = [options](std::size_t group, double, std::int64_t step) {
    const auto [cycle, height] = point(options, step);
    const double swing = height * amplitude(options, cycle, step);
    const double base = options.base_lr.of(group);
    GroupSetting at{.lr = base + (options.max_lr.of(group) - base) * swing};
    if (options.cycle_momentum) {
      const double top = options.max_momentum.of(group);
      at.momentum = top - (top - options.base_momentum.of(group)) * swing;
    }
    return at;
  };
  return {.name = "cyclic_lr", .setting = setting, .milestones = {{"the first peak comes", options.step_size_up}}};
}

}  // namespace hortator::step

namespace hortator {

Schedule cyclic_lr(torch::optim::Optimizer& optimizer, const CyclicLr& options) {
  return step::make_schedule(optimizer, step::course_of(options, optimizer));
}

}  // namespace hortator

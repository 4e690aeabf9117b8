#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>
#include <hortator/training/schedules.hpp>
#include <numbers>

#include "core/text/text.hpp"
#include "step/schedule/courses.hpp"

namespace hortator::step {
namespace {

enum class RateLevel { first, peak, last };

struct CyclePhase {
  double end = 0;  ///< in steps; may be fractional
  RateLevel from = RateLevel::first;
  RateLevel to = RateLevel::peak;
};

// The phase of a step, and the progress within it from 0 to 1.
struct CyclePosition {
  CyclePhase phase = {};
  double progress = 0;
};

std::vector<CyclePhase> phases_of(const OneCycle& options) {
  const auto total = static_cast<double>(options.total_steps);
  const double rise = options.pct_start * total - 1;
  if (!options.three_phase)
    return {{rise, RateLevel::first, RateLevel::peak}, {total - 1, RateLevel::peak, RateLevel::last}};
  return {{rise, RateLevel::first, RateLevel::peak},
          {2 * options.pct_start * total - 2, RateLevel::peak, RateLevel::first},
          {total - 1, RateLevel::first, RateLevel::last}};
}

CyclePosition position(const std::vector<CyclePhase>& phases, std::int64_t step) {
  const auto at = static_cast<double>(step);
  double begin = 0;
  std::size_t i = 0;
  while (at > phases[i].end && i + 1 < phases.size()) begin = phases[i++].end;
  const double length = phases[i].end - begin;
  return {phases[i], length > 0 ? std::min(1.0, (at - begin) / length) : 1.0};
}

double between(double from, double to, double progress, Anneal anneal) {
  if (anneal == Anneal::linear) return (to - from) * progress + from;
  return to + (from - to) / 2 * (std::cos(std::numbers::pi * progress) + 1);
}

double rate_at(RateLevel level, const OneCycle& options, std::size_t group) {
  const double peak = options.max_lr.of(group);
  const double first = peak / options.div_factor;
  if (level == RateLevel::peak) return peak;
  return level == RateLevel::first ? first : first / options.final_div_factor;
}

double momentum_at(RateLevel level, const OneCycle& options, std::size_t group) {
  return (level == RateLevel::peak ? options.base_momentum : options.max_momentum).of(group);
}

void check(const OneCycle& options, torch::optim::Optimizer& optimizer) {
  if (options.total_steps <= 0 || options.pct_start < 0 || options.pct_start > 1) {
    throw UsageError({.what = text::concat("one_cycle got total_steps = ", options.total_steps,
                                           " and pct_start = ", options.pct_start),
                      .why = "pct_start is the fraction of steps in which the rate rises",
                      .hint = "use at least one step, and 0 <= pct_start <= 1"});
  }
  const auto groups = optimizer.param_groups().size();
  options.max_lr.check(groups, "max_lr");
  options.base_momentum.check(groups, "base_momentum");
  options.max_momentum.check(groups, "max_momentum");
  if (options.cycle_momentum) require_momentum(optimizer, "one_cycle");
}

}  // namespace

void require_momentum(torch::optim::Optimizer& optimizer, const char* schedule) {
  for (auto& group : optimizer.param_groups()) {
    if (momentum_of(group.options()) != nullptr) continue;
    throw UsageError({.what = text::concat(schedule, " cannot cycle the momentum of an optimizer that has none"),
                      .why = "it sets the momentum of SGD and RMSprop, and the first beta of Adam and AdamW",
                      .hint = "set cycle_momentum = false"});
  }
}

Course course_of(const OneCycle& options, torch::optim::Optimizer& optimizer) {
  check(options, optimizer);
  const auto setting = [options, phases = phases_of(options)](std::size_t group, double, std::int64_t step) {
    const auto [phase, progress] = position(phases, step);
    GroupSetting at{.lr = between(rate_at(phase.from, options, group), rate_at(phase.to, options, group), progress,
                                  options.anneal)};
    if (options.cycle_momentum) {
      at.momentum = between(momentum_at(phase.from, options, group), momentum_at(phase.to, options, group), progress,
                            options.anneal);
    }
    return at;
  };
  const auto peak = std::max(0.0, std::ceil(phases_of(options).front().end));
  return {.name = "one_cycle",
          .setting = setting,
          .milestones = {{"warm-up ends", static_cast<std::int64_t>(peak)}, {"the schedule ends", options.total_steps}},
          .total_steps = options.total_steps};
}

}  // namespace hortator::step

namespace hortator {

Schedule one_cycle(torch::optim::Optimizer& optimizer, const OneCycle& options) {
  return step::make_schedule(optimizer, step::course_of(options, optimizer));
}

}  // namespace hortator

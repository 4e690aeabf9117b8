#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>
#include <hortator/training/schedules.hpp>
#include <numbers>

#include "core/text/text.hpp"
#include "step/schedule/course_schedule.hpp"

namespace hortator {
namespace {

enum class Level { first, peak, last };

struct Phase {
  double end = 0;  ///< a step; it need not be whole
  Level from = Level::first;
  Level to = Level::peak;
};

// Where a step lies: the phase, and how much of it is over (0 to 1).
struct Position {
  Phase phase = {};
  double part = 0;
};

std::vector<Phase> phases_of(const OneCycle& options) {
  const auto total = static_cast<double>(options.total_steps);
  const double rise = options.pct_start * total - 1;
  if (!options.three_phase) return {{rise, Level::first, Level::peak}, {total - 1, Level::peak, Level::last}};
  return {{rise, Level::first, Level::peak},
          {2 * options.pct_start * total - 2, Level::peak, Level::first},
          {total - 1, Level::first, Level::last}};
}

Position position(const std::vector<Phase>& phases, std::int64_t step) {
  const auto at = static_cast<double>(step);
  double begin = 0;
  std::size_t i = 0;
  while (at > phases[i].end && i + 1 < phases.size()) begin = phases[i++].end;
  const double length = phases[i].end - begin;
  return {phases[i], length > 0 ? std::min(1.0, (at - begin) / length) : 1.0};
}

double between(double from, double to, double part, Anneal anneal) {
  if (anneal == Anneal::linear) return (to - from) * part + from;
  return to + (from - to) / 2 * (std::cos(std::numbers::pi * part) + 1);
}

double rate_at(Level level, const OneCycle& options, std::size_t group) {
  const double peak = options.max_lr.of(group);
  const double first = peak / options.div_factor;
  if (level == Level::peak) return peak;
  return level == Level::first ? first : first / options.final_div_factor;
}

double momentum_at(Level level, const OneCycle& options, std::size_t group) {
  return (level == Level::peak ? options.base_momentum : options.max_momentum).of(group);
}

void check(const OneCycle& options, torch::optim::Optimizer& optimizer) {
  if (options.total_steps <= 0 || options.pct_start < 0 || options.pct_start > 1) {
    throw UsageError({.what = text::concat("one_cycle got total_steps = ", options.total_steps,
                                           " and pct_start = ", options.pct_start),
                      .why = "the rate rises in that part of the steps",
                      .hint = "choose at least one step, and 0 <= pct_start <= 1"});
  }
  const auto groups = optimizer.param_groups().size();
  options.max_lr.check(groups, "max_lr");
  options.base_momentum.check(groups, "base_momentum");
  options.max_momentum.check(groups, "max_momentum");
  for (auto& group : optimizer.param_groups()) {
    if (options.cycle_momentum && step::momentum_of(group.options()) == nullptr) {
      throw UsageError({.what = "one_cycle was asked to cycle the momentum of an optimizer that has none",
                        .why = "it knows SGD's and RMSprop's momentum and the first beta of Adam and AdamW",
                        .hint = "set cycle_momentum = false"});
    }
  }
}

}  // namespace

Schedule one_cycle(torch::optim::Optimizer& optimizer, const OneCycle& options) {
  check(options, optimizer);
  const auto setting = [options, phases = phases_of(options)](std::size_t group, double, std::int64_t step) {
    const auto [phase, part] = position(phases, step);
    step::GroupSetting at{
        .lr = between(rate_at(phase.from, options, group), rate_at(phase.to, options, group), part, options.anneal)};
    if (options.cycle_momentum) {
      at.momentum =
          between(momentum_at(phase.from, options, group), momentum_at(phase.to, options, group), part, options.anneal);
    }
    return at;
  };
  const auto peak = std::max(0.0, std::ceil(phases_of(options).front().end));
  return step::make_schedule(optimizer, {.name = "one_cycle",
                                         .setting = setting,
                                         .milestones = {{"warm-up ends", static_cast<std::int64_t>(peak)},
                                                        {"the schedule ends", options.total_steps}},
                                         .total_steps = options.total_steps});
}

}  // namespace hortator

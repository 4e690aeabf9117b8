#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>
#include <hortator/training/schedules.hpp>
#include <numbers>

#include "core/text/text.hpp"
#include "step/schedule/courses.hpp"

namespace hortator::step {
namespace {

void check_steps(std::int64_t warmup, std::int64_t total, const char* schedule) {
  if (warmup < 0 || total <= 0 || warmup > total) {
    throw UsageError({.what = text::concat(schedule, " got warmup_steps = ", warmup, " and total_steps = ", total),
                      .why = "the rate rises over warmup_steps, which are part of total_steps",
                      .hint = "use 0 <= warmup_steps <= total_steps, and at least one step"});
  }
}

double rise(std::int64_t step, std::int64_t warmup) { return static_cast<double>(step) / static_cast<double>(warmup); }

double span(std::int64_t from, std::int64_t to) { return static_cast<double>(std::max<std::int64_t>(1, to - from)); }

std::vector<Milestone> milestones(std::int64_t warmup, std::int64_t total) {
  return {{"warm-up ends", warmup}, {"the schedule ends", total}};
}

}  // namespace

Course course_of(const ConstantWarmup& options) {
  const auto warmup = options.warmup_steps;
  check_steps(warmup, std::max<std::int64_t>(warmup, 1), "constant_warmup");
  const auto factor = [warmup](std::int64_t step) { return step < warmup ? rise(step, warmup) : 1.0; };
  return course_by_factor("constant_warmup", factor, {{"warm-up ends", warmup}});
}

Course course_of(const LinearWarmup& options) {
  const auto [warmup, total] = options;
  check_steps(warmup, total, "linear_warmup");
  const auto factor = [warmup = warmup, total = total](std::int64_t step) {
    if (step < warmup) return rise(step, warmup);
    return std::max(0.0, static_cast<double>(total - step) / span(warmup, total));
  };
  return course_by_factor("linear_warmup", factor, milestones(warmup, total));
}

Course course_of(const CosineWarmup& options) {
  const auto [warmup, total, cycles, floor] = options;
  check_steps(warmup, total, "cosine_warmup");
  const auto factor = [warmup = warmup, total = total, cycles = cycles, floor = floor](std::int64_t step) {
    if (step < warmup) return rise(step, warmup);
    const double progress = std::min(1.0, static_cast<double>(step - warmup) / span(warmup, total));
    return floor + (1 - floor) * 0.5 * (1 + std::cos(2 * std::numbers::pi * cycles * progress));
  };
  return course_by_factor("cosine_warmup", factor, milestones(warmup, total));
}

}  // namespace hortator::step

namespace hortator {

Schedule constant_warmup(torch::optim::Optimizer& optimizer, const ConstantWarmup& options) {
  return step::make_schedule(optimizer, step::course_of(options));
}
Schedule linear_warmup(torch::optim::Optimizer& optimizer, const LinearWarmup& options) {
  return step::make_schedule(optimizer, step::course_of(options));
}
Schedule cosine_warmup(torch::optim::Optimizer& optimizer, const CosineWarmup& options) {
  return step::make_schedule(optimizer, step::course_of(options));
}

}  // namespace hortator

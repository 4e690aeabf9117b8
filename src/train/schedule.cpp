#include <algorithm>
#include <cmath>
#include <hortator/schedule.hpp>
#include <numbers>

#include "base/text.hpp"
#include "train/schedule_core.hpp"

namespace hortator {
namespace train {

ScheduleCore::ScheduleCore(torch::optim::Optimizer& optimizer, std::function<double(std::int64_t)> factor)
    : optimizer_(&optimizer), factor_(std::move(factor)) {
  for (const auto& group : optimizer_->param_groups()) base_rates_.push_back(group.options().get_lr());
  apply();
}

void ScheduleCore::attach(std::shared_ptr<const Session> session, std::int64_t times) {
  session_ = std::move(session);
  times_ = times;
}

void ScheduleCore::step() {
  if (session_) session_->check_alive("schedule");
  step_ += times_;
  apply();
}

void ScheduleCore::apply() const {
  const double factor = factor_(step_);
  for (std::size_t group = 0; group < base_rates_.size(); ++group) {
    optimizer_->param_groups()[group].options().set_lr(base_rates_[group] * factor);
  }
}

double ScheduleCore::last_lr() const { return base_rates_.empty() ? 0 : base_rates_.front() * factor_(step_); }

StateDict ScheduleCore::state() const {
  StateDict state;
  state.put("step", step_);
  for (std::size_t group = 0; group < base_rates_.size(); ++group) {
    state.put(text::concat("base_rates/", group), base_rates_[group]);
  }
  return state;
}

void ScheduleCore::load(const StateDict& state) {
  step_ = state.get<std::int64_t>("step");
  for (std::size_t group = 0; group < base_rates_.size(); ++group) {
    base_rates_[group] = state.get<double>(text::concat("base_rates/", group));
  }
  apply();
}

}  // namespace train

namespace {

void check_steps(std::int64_t warmup, std::int64_t total, const char* schedule) {
  if (warmup < 0 || total <= 0 || warmup > total) {
    throw UsageError({.what = text::concat(schedule, " got warmup_steps = ", warmup, " and total_steps = ", total),
                      .why = "the rate rises over warmup_steps, which are part of total_steps",
                      .hint = "choose 0 <= warmup_steps <= total_steps, and at least one step"});
  }
}

double rise(std::int64_t step, std::int64_t warmup) { return static_cast<double>(step) / static_cast<double>(warmup); }

double progress(std::int64_t step, std::int64_t warmup, std::int64_t total) {
  return std::min(1.0,
                  static_cast<double>(step - warmup) / static_cast<double>(std::max<std::int64_t>(1, total - warmup)));
}

}  // namespace

Schedule::Schedule(torch::optim::Optimizer& optimizer, std::function<double(std::int64_t)> factor)
    : core_(std::make_shared<train::ScheduleCore>(optimizer, std::move(factor))) {}

void Schedule::step() { core_->step(); }
double Schedule::last_lr() const { return core_->last_lr(); }
std::int64_t Schedule::steps() const { return core_->steps(); }
StateDict Schedule::state() const { return core_->state(); }
void Schedule::load(const StateDict& state) { core_->load(state); }

Schedule linear_warmup(torch::optim::Optimizer& optimizer, const LinearWarmup& options) {
  const auto [warmup, total] = options;
  check_steps(warmup, total, "linear_warmup");
  return Schedule(optimizer, [warmup = warmup, total = total](std::int64_t step) {
    return step < warmup ? rise(step, warmup) : 1 - progress(step, warmup, total);
  });
}

Schedule cosine_warmup(torch::optim::Optimizer& optimizer, const CosineWarmup& options) {
  const auto [warmup, total, floor] = options;
  check_steps(warmup, total, "cosine_warmup");
  return Schedule(optimizer, [warmup = warmup, total = total, floor = floor](std::int64_t step) {
    if (step < warmup) return rise(step, warmup);
    return floor + (1 - floor) * 0.5 * (1 + std::cos(std::numbers::pi * progress(step, warmup, total)));
  });
}

}  // namespace hortator

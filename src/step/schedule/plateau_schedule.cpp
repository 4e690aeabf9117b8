#include "step/schedule/plateau_schedule.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator {
namespace step {

PlateauSchedule::PlateauSchedule(torch::optim::Optimizer& optimizer, const PlateauOptions& options)
    : optimizer_(&optimizer), options_(options), watch_(options) {
  options.min_lr.check(optimizer.param_groups().size(), "min_lr");
  if (options.factor >= 1) {
    throw UsageError({.what = text::concat("reduce_on_plateau got factor = ", options.factor),
                      .why = "the rate is multiplied by it and must fall",
                      .hint = "use a factor below 1"});
  }
}

void PlateauSchedule::step(double metric) {
  link_.check_alive();
  if (link_.session) link_.session->refuse_in_recording("ReduceOnPlateau::step() was called");
  const double agreed = link_.session ? link_.agree_on_metric(metric) : metric;
  ++step_;
  if (watch_.should_reduce(agreed)) reduce();
}

void PlateauSchedule::reduce() {
  std::size_t index = 0;
  for (auto& group : optimizer_->param_groups()) {
    const double before = group.options().get_lr();
    const double after = std::max(before * options_.factor, options_.min_lr.of(index++));
    if (before - after > options_.eps) group.options().set_lr(after);
  }
}

StateDict PlateauSchedule::state() const {
  StateDict state;
  state.put("step", step_);
  state.put_all("watch", watch_.state());
  for (std::size_t group = 0; group < optimizer_->param_groups().size(); ++group) {
    state.put(text::concat("rates/", group), optimizer_->param_groups()[group].options().get_lr());
  }
  return state;
}

void PlateauSchedule::load(const StateDict& state) {
  step_ = state.get<std::int64_t>("step");
  watch_.load(state.under("watch"));
  for (std::size_t group = 0; group < optimizer_->param_groups().size(); ++group) {
    optimizer_->param_groups()[group].options().set_lr(state.get<double>(text::concat("rates/", group)));
  }
}

}  // namespace step

ReduceOnPlateau::ReduceOnPlateau(torch::optim::Optimizer& optimizer, const PlateauOptions& options)
    : ScheduleBase(std::make_shared<step::PlateauSchedule>(optimizer, options)) {}

void ReduceOnPlateau::step(double metric) { static_cast<step::PlateauSchedule&>(core()).step(metric); }

}  // namespace hortator

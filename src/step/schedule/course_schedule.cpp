#include "step/schedule/course_schedule.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "step/capture/step_recording.hpp"

namespace hortator::step {

CourseSchedule::CourseSchedule(torch::optim::Optimizer& optimizer, Course course)
    : optimizer_(&optimizer), course_(std::move(course)) {
  for (const auto& group : optimizer_->param_groups()) base_rates_.push_back(group.options().get_lr());
  move_to(0);
}

void CourseSchedule::step() {
  link_.check_alive();
  if (auto* recording = link_.recording()) return recording->before_replay([this] { step_now(); });
  step_now();
}

void CourseSchedule::step_now() {
  const auto steps = steps_of_this_call();
  if (steps > 0) move_to(step_ + steps);
}

std::int64_t CourseSchedule::steps_of_this_call() const {
  if (!link_.session) return 1;
  StepCall call{.gradients_synchronised = link_.gradients_synchronised(),
                .optimizer_was_skipped = link_.optimizer_was_skipped()};
  if (course_.total_steps) call.left = *course_.total_steps - step_;
  return inner_steps(link_.pace, call);
}

void CourseSchedule::move_to(std::int64_t step) {
  if (course_.total_steps && step > *course_.total_steps) {
    throw UsageError({.what = text::concat(course_.name, " was stepped ", step, " times, but its total_steps are ",
                                           *course_.total_steps),
                      .why = "it defines no rate after its end",
                      .hint = "step it once for each update, and set total_steps to the number of updates"});
  }
  for (std::size_t group = 0; group < base_rates_.size(); ++group) {
    auto& options = optimizer_->param_groups()[group].options();
    const auto setting = course_.setting(group, base_rates_[group], step);
    options.set_lr(setting.lr);
    if (setting.momentum) *momentum_of(options) = *setting.momentum;
  }
  step_ = step;
}

std::string CourseSchedule::effect() const {
  const auto advance = step::effect(link_.pace, course_.milestones);
  return course_.name.empty() ? advance : course_.name + ", " + advance;
}

StateDict CourseSchedule::state() const {
  StateDict state;
  state.put("step", step_);
  for (std::size_t group = 0; group < base_rates_.size(); ++group) {
    state.put(text::concat("base_rates/", group), base_rates_[group]);
  }
  return state;
}

void CourseSchedule::load(const StateDict& state) {
  for (std::size_t group = 0; group < base_rates_.size(); ++group) {
    base_rates_[group] = state.get<double>(text::concat("base_rates/", group));
  }
  move_to(state.get<std::int64_t>("step"));
}

Schedule make_schedule(torch::optim::Optimizer& optimizer, Course course) {
  return Schedule(std::make_shared<CourseSchedule>(optimizer, std::move(course)));
}

}  // namespace hortator::step

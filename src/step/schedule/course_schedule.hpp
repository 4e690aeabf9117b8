#pragma once

#include <vector>

#include "step/schedule/course.hpp"
#include "step/schedule/schedule_core.hpp"

namespace hortator::step {

/// Sets an optimizer's rates along a course.
class CourseSchedule final : public ScheduleCore {
 public:
  CourseSchedule(torch::optim::Optimizer& optimizer, Course course);

  /// Advances by one step, or by as many as the link requires.
  void step();
  /// torch's private step count, which starts at 1.
  std::int64_t step_count() const { return step_ + 1; }

  void attach(const ScheduleLink& link) override { link_ = link; }
  bool is_attached_to(const AcceleratorSession& session) const override { return link_.session.get() == &session; }
  const torch::optim::Optimizer& optimizer() const override { return *optimizer_; }

  std::int64_t steps() const override { return step_; }
  std::string effect() const override;

  StateDict state() const override;
  void load(const StateDict& state) override;

 private:
  void step_now();
  std::int64_t steps_of_this_call() const;
  void move_to(std::int64_t step);

  torch::optim::Optimizer* optimizer_;
  Course course_;
  std::vector<double> base_rates_;  ///< by parameter group
  std::int64_t step_ = 0;
  ScheduleLink link_;
};

/// Creates a schedule along this course.
Schedule make_schedule(torch::optim::Optimizer& optimizer, Course course);

}  // namespace hortator::step

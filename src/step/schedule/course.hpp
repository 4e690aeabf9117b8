#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "step/schedule/schedule_pace.hpp"

namespace hortator::step {

/// A schedule's values for one parameter group at one step.
struct GroupSetting {
  double lr = 0;
  std::optional<double> momentum = {};  ///< for momentum_of(); nothing if the schedule does not set it
};

/// A schedule as a pure function of the step.
struct Course {
  std::string name = {};  ///< "one_cycle"; empty for a user's function
  std::function<GroupSetting(std::size_t group, double base_lr, std::int64_t step)> setting = {};
  std::vector<Milestone> milestones = {};
  std::optional<std::int64_t> total_steps = {};  ///< undefined after this step
  bool scales = false;                           ///< the rate is the base rate times a number of the step
};

/// A course whose rate is each group's base rate times `factor`.
Course course_by_factor(std::string name, std::function<double(std::int64_t)> factor,
                        std::vector<Milestone> milestones = {});

/// The momentum of SGD and RMSprop, or the first beta of Adam and AdamW; null for others.
double* momentum_of(torch::optim::OptimizerOptions& options);

}  // namespace hortator::step

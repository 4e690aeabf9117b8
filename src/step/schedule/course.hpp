#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "step/schedule/schedule_pace.hpp"

namespace hortator::step {

/// What a schedule says of one parameter group at one step.
struct GroupSetting {
  double lr = 0;
  std::optional<double> momentum = {};  ///< as momentum_of() finds it; nothing: not the schedule's business
};

/// A schedule as a pure function of the step.
struct Course {
  std::string name = {};  ///< "one_cycle"; empty: a function of the user's
  std::function<GroupSetting(std::size_t group, double base_lr, std::int64_t step)> setting = {};
  std::vector<Milestone> milestones = {};
  std::optional<std::int64_t> total_steps = {};  ///< nothing is said of steps beyond
};

/// Every group's base rate times one factor.
Course course_by_factor(std::string name, std::function<double(std::int64_t)> factor,
                        std::vector<Milestone> milestones = {});

/// SGD's and RMSprop's momentum, Adam's and AdamW's first beta; null for others.
double* momentum_of(torch::optim::OptimizerOptions& options);

}  // namespace hortator::step

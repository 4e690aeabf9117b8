#pragma once

#include <cstdint>
#include <hortator/schedule.hpp>
#include <limits>
#include <string>
#include <vector>

namespace hortator::step {

/// How fast a prepared schedule advances.
struct SchedulePace {
  std::int64_t times = 1;      ///< steps of the schedule for each update of the optimizer
  bool with_optimizer = true;  ///< false: one step for each call, whatever the optimizer does
  std::string reason = {};     ///< "per_process, 4 ranks"
};

struct PaceChoice {
  ScheduleStep rule = ScheduleStep::per_process;
  bool with_optimizer = true;
  bool split_batches = false;
  int world = 1;
};
SchedulePace pace_of(const PaceChoice& choice);

/// The circumstances of one call of step().
struct StepCall {
  bool gradients_synchronised = true;
  bool optimizer_was_skipped = false;
  std::int64_t left = std::numeric_limits<std::int64_t>::max();  ///< steps until the schedule's end
};
/// The number of steps by which the schedule advances in this call.
std::int64_t inner_steps(const SchedulePace& pace, const StepCall& call);

/// A step at which something happens ("warm-up ends"). Step 0 is not shown.
struct Milestone {
  std::string what = {};
  std::int64_t step = 0;
};
/// Text for the log: "each update advances 4 steps (per_process, 4 ranks): warm-up ends after update 25, the schedule
/// ends after update 250"
std::string effect(const SchedulePace& pace, const std::vector<Milestone>& milestones);

}  // namespace hortator::step

#pragma once

#include <cstdint>
#include <hortator/schedule.hpp>
#include <limits>
#include <string>
#include <vector>

namespace hortator::step {

/// How fast a prepared schedule advances, as chosen when it is prepared.
struct SchedulePace {
  std::int64_t times = 1;      ///< steps of the schedule at each update of the optimizer
  bool with_optimizer = true;  ///< false: one step a call, whatever the optimizer does
  std::string reason = {};     ///< "per_process, 4 ranks"
};

struct PaceChoice {
  ScheduleStep rule = ScheduleStep::per_process;
  bool with_optimizer = true;
  bool split_batches = false;
  int world = 1;
};
SchedulePace pace_of(const PaceChoice& choice);

/// What a call of step() meets.
struct StepCall {
  bool gradients_synchronised = true;
  bool optimizer_was_skipped = false;
  std::int64_t left = std::numeric_limits<std::int64_t>::max();  ///< steps until the schedule's end
};
/// How many steps the schedule makes in this call.
std::int64_t inner_steps(const SchedulePace& pace, const StepCall& call);

/// A step after which something has happened: "warm-up ends". At 0 it is not worth a word.
struct Milestone {
  std::string what = {};
  std::int64_t step = 0;
};
/// "each update advances 4 steps (per_process, 4 ranks): warm-up ends after update 25, the schedule ends after update
/// 250"
std::string effect(const SchedulePace& pace, const std::vector<Milestone>& milestones);

}  // namespace hortator::step

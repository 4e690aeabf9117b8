#include "step/schedule/schedule_pace.hpp"

#include <algorithm>

#include "core/text/text.hpp"

namespace hortator::step {

SchedulePace pace_of(const PaceChoice& choice) {
  if (!choice.with_optimizer) return {.times = 1, .with_optimizer = false, .reason = "whatever the optimizer does"};
  if (choice.rule == ScheduleStep::per_update) return {.times = 1, .with_optimizer = true, .reason = "per_update"};
  // A split batch counts once for all ranks.
  if (choice.split_batches) return {.times = 1, .with_optimizer = true, .reason = "batches are split"};
  return {.times = choice.world,
          .with_optimizer = true,
          .reason = text::concat("per_process, ", text::count(choice.world, "rank"))};
}

std::int64_t inner_steps(const SchedulePace& pace, const StepCall& call) {
  if (!pace.with_optimizer) return 1;
  if (!call.gradients_synchronised || call.optimizer_was_skipped) return 0;
  return std::clamp<std::int64_t>(call.left, 0, pace.times);
}

std::string effect(const SchedulePace& pace, const std::vector<Milestone>& milestones) {
  const auto* unit = pace.with_optimizer ? "update" : "call";
  std::vector<std::string> parts;
  for (const auto& [what, step] : milestones) {
    if (step > 0) parts.push_back(text::concat(what, " after ", unit, " ", (step + pace.times - 1) / pace.times));
  }
  auto line = text::concat("each ", unit, " advances ", text::count(pace.times, "step"), " (", pace.reason, ")");
  if (!parts.empty()) line += ": " + text::join(parts);
  return line;
}

}  // namespace hortator::step

#include <algorithm>

#include "accelerator/channels/channels.hpp"
#include "accelerator/state/node_saving.hpp"
#include "accelerator/training/complete_checkpoints.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "core/call_site.hpp"
#include "core/log.hpp"
#include "mpi/collectives.hpp"
#include "runtime/ending/stop_signal.hpp"

namespace hortator {

bool Accelerator::should_stop() {
  const CallSite site(__builtin_return_address(0));
  runtime::survive_seconds_signal();
  accelerator::announce_completed_saves(*training_);
  auto& stopping = training_->control.stopping();
  if (stopping.is_leaving()) return true;
  if (!training_->control.is_between_steps()) return false;
  if (!stopping.agree_to_stop()) {
    const auto due = stopping.agree_to_other_saves();
    if (due.on_nodes) accelerator::save_on_nodes(*training_);
    if (due.in_project) save_state();
    return false;
  }
  if (stopping.agree_that_save_fits()) {
    const auto folder = save_state();
    wait_for_checkpoint();
    log::info("Stopping early: the run is saved in ", folder.string(), " and leaves");
  } else {
    const bool found = has_checkpoint();
    log::info("The job ends within seconds, too soon for a save: the run stops",
              found ? ", and can resume from the project's last checkpoint" : ", and the project has no checkpoint");
  }
  stopping.leave();
  return true;
}

std::optional<std::filesystem::path> Accelerator::save_state_every(std::chrono::milliseconds every) {
  const CallSite site(__builtin_return_address(0));
  if (every.count() <= 0) {
    throw UsageError({.what = "save_state_every() got a duration that is not positive",
                      .hint = "pass the time between two saves, for example std::chrono::minutes(10)"});
  }
  auto& stopping = training_->control.stopping();
  stopping.pace().ask_for_every(every);
  if (!training_->control.is_between_steps() || !stopping.agree_to_save()) return {};
  return save_state();
}

std::optional<std::chrono::seconds> Accelerator::time_left() {
  const CallSite site(__builtin_return_address(0));
  constexpr std::int64_t unknown = -1;
  std::int64_t left = unknown;
  if (is_main_process()) {
    if (const auto known = training_->control.stopping().job_time().ask_left()) left = known->count();
  }
  left = mpi::broadcast(training_->host(), left);
  return left == unknown ? std::nullopt : std::optional(std::chrono::seconds(left));
}

std::chrono::seconds Accelerator::suggested_save_interval(std::chrono::seconds between_failures) {
  const CallSite site(__builtin_return_address(0));
  using Ticks = accelerator::SavePace::Clock::duration;
  auto& stopping = training_->control.stopping();
  const auto mine = stopping.pace().cost().value_or(Ticks::zero()).count();
  const Ticks cost(mpi::broadcast(training_->host(), mine));
  if (cost == Ticks::zero()) {
    throw UsageError({.what = "suggested_save_interval() before the first save_state()",
                      .why = "how often to save depends on how long it takes",
                      .hint = "call it after the first save"});
  }
  const auto until_there = stopping.save_times().longest.value_or(Ticks::zero()).count();
  const Ticks longest(mpi::broadcast(training_->host(), until_there));
  return std::max(accelerator::best_interval(cost, between_failures), std::chrono::ceil<std::chrono::seconds>(longest));
}

}  // namespace hortator

#pragma once

#include <vector>

#include "launch/job/sweep.hpp"
#include "launch/settings/settings.hpp"

namespace hortator::tools {

/// Whether neither the settings nor PATH have a scheduler.
bool has_no_scheduler(const launching::Settings& settings);

/// Runs the tasks of a sweep one after the other on this machine, as `hortator launch` does, each in a run folder of
/// its own. A failed task does not end the sweep; one that is stopped or ended by a signal does. Returns 0, or the exit
/// code of the first task that has not finished. With `is_dry` it only prints the commands.
int run_sweep_here(const launching::Settings& settings, const std::vector<launching::SweepTask>& tasks, bool is_dry);

}  // namespace hortator::tools

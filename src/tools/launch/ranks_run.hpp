#pragma once

#include "launch/command.hpp"
#include "tools/launch/restart_plan.hpp"

namespace hortator::tools {

/// The exit code of a run that was stopped on purpose, to be resumed.
constexpr int stopped_code = 75;

/// Starts the ranks, waits for their end, and restarts a failed run within the limits, unless the rules of `hortator
/// why` say that this cannot help. Returns the exit code: 0 finished, 75 stopped on purpose, 130 ended by Ctrl-C,
/// otherwise that of the failed rank.
int run_ranks(launching::LaunchRequest request, const launching::LaunchEnvironment& facts,
              const RestartLimits& restarts);

}  // namespace hortator::tools

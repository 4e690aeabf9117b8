#pragma once

#include <string>
#include <vector>

#include "launch/command.hpp"
#include "tools/launch/restart_plan.hpp"

namespace hortator::tools {

/// The exit code of a run that was stopped on purpose, to be resumed.
constexpr int stopped_code = 75;

/// The memory of nodes in which the ranks may keep checkpoints.
struct MemorySettings {
  std::string parent = "/dev/shm";  ///< the folder in which each node gets one
  bool is_asked_for = false;        ///< by the launch; else the program may
};

/// Starts the ranks, waits for their end, and restarts a failed run within the limits, unless the rules of `hortator
/// why` say that this cannot help. Returns the exit code: 0 finished, 75 stopped on purpose, 130 ended by Ctrl-C,
/// otherwise that of the failed rank. `on_checkpoint` is a command, with its arguments, that runs for
/// each complete checkpoint; none: no command.
int run_ranks(launching::LaunchRequest request, const launching::LaunchEnvironment& facts,
              const RestartLimits& restarts, const MemorySettings& memory = {},
              const std::vector<std::string>& on_checkpoint = {});

}  // namespace hortator::tools

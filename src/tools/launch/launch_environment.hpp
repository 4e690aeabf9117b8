#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/command.hpp"
#include "launch/settings/settings.hpp"

namespace hortator::tools {

/// Detects scheduler, launcher and MPI. Throws Error if no launcher is available.
launching::LaunchEnvironment detect_environment(const launching::Settings& settings);

/// MPI and mpirun for a job that runs elsewhere: assumed to be those found here, else those that Hortator was built
/// with.
launching::LaunchEnvironment facts_elsewhere(const launching::Settings& settings);

/// The nodes that the allocation still has: Slurm removes a failed node from a job that survives it. Updates the
/// SLURM_* variables for srun. Returns none if Slurm does not answer.
std::vector<std::string> remaining_nodes();

/// The nodes of the allocation in which this process runs; 1 outside of one.
int nodes_at_hand();

/// The hosts of a job of PBS; empty outside of one.
std::vector<std::string> hosts_at_hand();

/// The command that starts another one on a host: that of Open MPI's settings, otherwise ssh without questions.
std::vector<std::string> remote_shell();

/// Prints how many ranks there are if the user gave no number.
void note_assumed_ranks(const launching::LaunchRequest& request);

/// Throws UsageError with a suggestion if there is no such executable.
void check_program(const std::string& program);

}  // namespace hortator::tools

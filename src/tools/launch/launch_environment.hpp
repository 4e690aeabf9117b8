#pragma once

#include <optional>
#include <string>

#include "launch/command.hpp"
#include "launch/settings/settings.hpp"

namespace hortator::tools {

/// What the machine and the scheduler say of where we are. Error when nothing is here that could start ranks.
launching::LaunchEnvironment look_around(const launching::Settings& settings);

/// For a job that will run elsewhere: which MPI and mpirun it will find there, taken for the one that is here, or else
/// for the one that Hortator was built with.
launching::LaunchEnvironment facts_elsewhere(const launching::Settings& settings);

/// How many nodes the allocation has by now: Slurm takes a lost one away from a job that survives it. From here on srun
/// knows of it, too. Nothing when Slurm does not answer.
std::optional<int> count_nodes_again();

/// UsageError when there is no such executable, with what was most likely meant.
void check_program(const std::string& program);

}  // namespace hortator::tools

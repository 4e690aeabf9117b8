#pragma once

#include "launch/settings/synonyms.hpp"
#include "tools/command_line/options.hpp"

/// The scheduler or launcher at hand, which decides what a short flag means.
namespace hortator::tools {

/// For a job: the scheduler that the command line or the settings name, otherwise the one whose command is on PATH, and
/// Slurm if there is none.
launching::Dialect dialect_of_job(const Arguments& arguments);

/// For a launch: the scheduler of the job in which it runs, otherwise mpirun.
launching::Dialect dialect_of_launch(const Arguments& arguments);

}  // namespace hortator::tools

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

/// The schedulers of jobs, and in what they differ for a job script.
namespace hortator::launching {

enum class Scheduler { slurm, pbs, flux, lsf, grid_engine };

struct SchedulerFacts {
  Scheduler scheduler = Scheduler::slurm;
  std::string_view name = "";     ///< of --scheduler: "slurm"
  std::string_view title = "";    ///< "Slurm"
  std::string_view submits = "";  ///< the program that submits a job
  std::string_view lists = "";    ///< the command that shows a user's jobs
  std::string_view prefix = "";   ///< of its lines in a script, with a blank
  std::string_view part = "";     ///< of jobs/batch.sh.in: the file that is inserted; Slurm has a template of its own
  std::string_view agent = "";  ///< the file in jobs/ that starts an Open MPI daemon on another host; empty: not needed
  std::string_view task_variable = "";  ///< the number of a task of an array; empty: there are no arrays
  int first_task = 0;                   ///< the smallest number that its arrays may have
};

std::span<const SchedulerFacts> schedulers();
const SchedulerFacts& facts_of(Scheduler scheduler);
/// Nothing for an unknown name.
std::optional<Scheduler> scheduler_named(std::string_view name);
/// All names, separated by blanks.
std::string scheduler_names();

}  // namespace hortator::launching

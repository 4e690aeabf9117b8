#include "launch/job/scheduler.hpp"

#include <algorithm>
#include <array>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

constexpr auto known_schedulers = std::to_array<SchedulerFacts>({
    {.scheduler = Scheduler::slurm,
     .name = "slurm",
     .title = "Slurm",
     .submits = "sbatch",
     .lists = "squeue",
     .prefix = "#SBATCH ",
     .task_variable = "SLURM_ARRAY_TASK_ID"},
    {.scheduler = Scheduler::pbs,
     .name = "pbs",
     .title = "PBS",
     .submits = "qsub",
     .lists = "qstat",
     .prefix = "#PBS ",
     .part = "pbs_part.sh.in",
     .agent = "pbs_agent.sh",
     .task_variable = "PBS_ARRAY_INDEX"},
    {.scheduler = Scheduler::flux,
     .name = "flux",
     .title = "Flux",
     .submits = "flux",
     .lists = "flux jobs",
     .prefix = "#flux: ",
     .part = "flux_part.sh.in"},
    {.scheduler = Scheduler::lsf,
     .name = "lsf",
     .title = "LSF",
     .submits = "bsub",
     .lists = "bjobs",
     .prefix = "#BSUB ",
     .part = "lsf_part.sh.in",
     .agent = "lsf_agent.sh",
     .task_variable = "LSB_JOBINDEX",
     .first_task = 1},
    {.scheduler = Scheduler::grid_engine,
     .name = "sge",
     .title = "Grid Engine",
     .submits = "qsub",
     .lists = "qstat",
     .prefix = "#$ ",
     .part = "sge_part.sh.in",
     .agent = "sge_agent.sh",
     .task_variable = "SGE_TASK_ID",
     .first_task = 1},
});

}  // namespace

std::span<const SchedulerFacts> schedulers() { return known_schedulers; }

const SchedulerFacts& facts_of(Scheduler scheduler) {
  return *std::ranges::find(known_schedulers, scheduler, &SchedulerFacts::scheduler);
}

std::optional<Scheduler> scheduler_named(std::string_view name) {
  const auto* found = std::ranges::find(known_schedulers, name, &SchedulerFacts::name);
  return found == known_schedulers.end() ? std::nullopt : std::optional(found->scheduler);
}

std::string scheduler_names() {
  std::string names;
  for (const auto& each : known_schedulers) names += text::concat(names.empty() ? "" : " ", each.name);
  return names;
}

}  // namespace hortator::launching

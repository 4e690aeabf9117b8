#include "tools/launch/batch.hpp"

#include <utility>

#include "core/environment/environment.hpp"
#include "tools/programs.hpp"

namespace hortator::tools {

Batch detect_batch() {
  for (const auto& [variable, name] :
       {std::pair("SLURM_JOB_ID", "Slurm"), {"PBS_JOBID", "PBS"}, {"LSB_JOBID", "LSF"}, {"FLUX_URI", "Flux"}}) {
    if (const auto job = core::variable(variable)) return {.scheduler = name, .job = job};
  }
  if (const auto job = core::variable("JOB_ID"); job && core::variable("SGE_ROOT"))
    return {.scheduler = "Grid Engine", .job = job};
  for (const auto& [program, name] : {std::pair("sbatch", "Slurm"),
                                      {"qsub", core::variable("SGE_ROOT") ? "Grid Engine" : "PBS"},
                                      {"bsub", "LSF"},
                                      {"flux", "Flux"}}) {
    if (find_program(program)) return {.scheduler = name};
  }
  return {};
}

}  // namespace hortator::tools

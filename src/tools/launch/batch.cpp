#include "tools/launch/batch.hpp"

#include <utility>

#include "core/environment/environment.hpp"
#include "tools/programs.hpp"

namespace hortator::tools {

Batch detect_batch() {
  for (const auto& [variable, name] :
       {std::pair("SLURM_JOB_ID", "Slurm"), {"PBS_JOBID", "PBS"}, {"LSB_JOBID", "LSF"}}) {
    if (const auto job = core::variable(variable)) return {.scheduler = name, .job = job};
  }
  for (const auto& [program, name] : {std::pair("sbatch", "Slurm"), {"qsub", "PBS"}, {"bsub", "LSF"}}) {
    if (find_program(program)) return {.scheduler = name};
  }
  return {};
}

}  // namespace hortator::tools

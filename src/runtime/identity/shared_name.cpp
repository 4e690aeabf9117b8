#include "runtime/identity/shared_name.hpp"

#include "core/text/text.hpp"
#include "runtime/identity/run_folder.hpp"

namespace hortator::runtime {

std::string shared_name(std::string_view what, const core::Variables& variables) {
  if (const auto job = variables("SLURM_JOB_ID")) {
    return text::concat("hortator-", *job, ".", variables("SLURM_STEP_ID").value_or("batch"), "-", what);
  }
  const auto run = current_run().id;
  // mpirun does not name the runs within a job.
  if (const auto job = variables("PBS_JOBID")) return text::concat("hortator-", *job, ".", run, "-", what);
  return text::concat("hortator-", run, "-", what);
}

}  // namespace hortator::runtime

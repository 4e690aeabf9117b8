#include "runtime/shared_name.hpp"

#include "base/text.hpp"
#include "runtime/run_folder.hpp"

namespace hortator::runtime {

std::string shared_name(std::string_view what, const Variables& variables) {
  if (const auto job = variables("SLURM_JOB_ID")) {
    return text::concat("hortator-", *job, ".", variables("SLURM_STEP_ID").value_or("batch"), "-", what);
  }
  if (const auto job = variables("PBS_JOBID")) return text::concat("hortator-", *job, "-", what);
  return text::concat("hortator-", current_run().id, "-", what);
}

}  // namespace hortator::runtime

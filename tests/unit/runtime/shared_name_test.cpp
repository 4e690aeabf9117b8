#include "runtime/identity/shared_name.hpp"

#include <map>

#include "runtime/identity/run_folder.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

std::string name_in(const std::map<std::string, std::string>& table) {
  return runtime::shared_name("board", [&](const char* name) -> std::optional<std::string> {
    const auto found = table.find(name);
    return found == table.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

}  // namespace

TEST_CASE("shared objects are named after the job and its step, or after the run where a job has several") {
  const auto run = runtime::current_run().id;
  CHECK(name_in({{"SLURM_JOB_ID", "71"}, {"SLURM_STEP_ID", "3"}}) == "hortator-71.3-board");
  CHECK(name_in({{"SLURM_JOB_ID", "71"}}) == "hortator-71.batch-board");
  CHECK(name_in({{"SLURM_JOB_ID", "71"}, {"PBS_JOBID", "8.n1"}}) == "hortator-71.batch-board");
  CHECK(name_in({{"PBS_JOBID", "8.n1"}}) == "hortator-8.n1." + run + "-board");
  CHECK(name_in({}) == "hortator-" + run + "-board");
}

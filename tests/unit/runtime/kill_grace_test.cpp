#include "runtime/ending/kill_grace.hpp"

#include <hortator/error.hpp>
#include <map>

#include "support/catch.hpp"

using namespace hortator;
using namespace std::chrono_literals;
using runtime::Launcher;

namespace {

std::chrono::milliseconds grace(Launcher launcher, std::map<std::string, std::string> table = {}) {
  return runtime::kill_grace(launcher, [table = std::move(table)](const char* name) -> std::optional<std::string> {
    const auto found = table.find(name);
    return found == table.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

}  // namespace

TEST_CASE("the time between SIGTERM and SIGKILL depends on the launcher and the scheduler") {
  CHECK(grace(Launcher::srun) == 30s);
  CHECK(grace(Launcher::mpirun) == 1s);
  CHECK(grace(Launcher::mpirun, {{"PBS_JOBID", "7"}}) == 1s);
  CHECK(grace(Launcher::mpirun, {{"OMPI_MCA_odls_base_sigkill_timeout", "25"}}) == 25s);
  CHECK(grace(Launcher::mpirun, {{"PRTE_MCA_odls_base_sigkill_timeout", "40"}}) == 40s);
  CHECK(grace(Launcher::mpirun,
              {{"PRTE_MCA_odls_base_sigkill_timeout", "40"}, {"OMPI_MCA_odls_base_sigkill_timeout", "25"}}) == 40s);
  CHECK(grace(Launcher::pals, {{"PBS_JOBID", "7"}}) == 10s);
  CHECK(grace(Launcher::plain) == 30s);
  CHECK(grace(Launcher::mpirun, {{"HORTATOR_KILL_GRACE", "2min"}}) == 2min);
  CHECK_THROWS_WITH(grace(Launcher::srun, {{"HORTATOR_KILL_GRACE", "long"}}), ContainsSubstring("'long'"));
}

#include "runtime/ending/kill_grace.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "core/text/units.hpp"

namespace hortator::runtime {
namespace {

using namespace std::chrono_literals;

std::chrono::milliseconds parsed(const std::string& text) {
  const auto grace = units::parse_duration(text);
  if (grace) return *grace;
  throw UsageError({.what = text::concat("HORTATOR_KILL_GRACE is ", text::quote(text)),
                    .why = "it says how long after SIGTERM the scheduler sends SIGKILL",
                    .hint = "give a duration such as 30s"});
}

}  // namespace

std::chrono::milliseconds kill_grace(Launcher launcher, const core::Variables& variables) {
  if (const auto asked = variables("HORTATOR_KILL_GRACE")) return parsed(*asked);
  if (launcher == Launcher::srun) return 30s;
  // The ranks are children of mpirun's daemons, which kill them long before the scheduler does.
  if (launcher == Launcher::mpirun) {
    // Open MPI 5's mpirun is PRRTE's.
    const auto asked = core::number(variables, "PRTE_MCA_odls_base_sigkill_timeout");
    return std::chrono::seconds(asked ? *asked
                                      : core::number(variables, "OMPI_MCA_odls_base_sigkill_timeout").value_or(1));
  }
  if (variables("PBS_JOBID")) return 10s;
  return 30s;
}

}  // namespace hortator::runtime

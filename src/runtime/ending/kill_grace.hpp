#pragma once

#include <chrono>

#include "core/environment/environment.hpp"
#include "runtime/launcher.hpp"

namespace hortator::runtime {

/// How long a process lives on after SIGTERM before SIGKILL comes, by who started it and in which job: Slurm's KillWait
/// and PBS's kill_delay as they are by default, Open MPI's odls_base_sigkill_timeout (of PRTE_MCA_ from version 5 on,
/// of OMPI_MCA_ before), which is a second unless set. HORTATOR_KILL_GRACE (30s, 2min) knows better.
std::chrono::milliseconds kill_grace(Launcher launcher, const core::Variables& variables);

}  // namespace hortator::runtime

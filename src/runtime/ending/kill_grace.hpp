#pragma once

#include <chrono>

#include "core/environment/environment.hpp"
#include "runtime/identity/launcher.hpp"

namespace hortator::runtime {

/// The time between SIGTERM and SIGKILL, which depends on the launcher and the scheduler: the defaults of Slurm's
/// KillWait and PBS's kill_delay, or Open MPI's odls_base_sigkill_timeout (PRTE_MCA_ from version 5, OMPI_MCA_ before),
/// which is one second unless set. HORTATOR_KILL_GRACE (30s, 2min) overrides it.
std::chrono::milliseconds kill_grace(Launcher launcher, const core::Variables& variables);

}  // namespace hortator::runtime

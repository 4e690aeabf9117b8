#pragma once

#include <string>

#include "core/environment/environment.hpp"

namespace hortator::core {

/// The family of the MPI whose launcher has started this process: "openmpi", or "mpich", to which Intel MPI, Cray MPICH
/// and MVAPICH belong. HORTATOR_MPI_FAMILY or the launcher's own variables tell it; empty where neither does, as under
/// srun, which starts the programs of any MPI. Throws UsageError for another value of the variable.
std::string mpi_family_of_launcher(const Variables& variables);

}  // namespace hortator::core

#pragma once

#include <string_view>

namespace hortator::launching {

/// Whose mpirun it is: they agree on -n and on little else. PALS is HPE's mpiexec under PBS.
enum class MpiFlavor { open_mpi, mpich, pals, other };

/// Read from what `mpirun --version` prints.
MpiFlavor mpi_flavor(std::string_view version_text);

/// The 5 of "mpirun (Open MPI) 5.0.7"; 0 where there is none.
int mpi_major(std::string_view version_text);

}  // namespace hortator::launching

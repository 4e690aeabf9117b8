#pragma once

#include <string_view>

namespace hortator::launching {

/// The vendor of an mpirun, which decides its options: only -n is common to all. PALS is HPE's mpiexec under PBS.
enum class MpiFlavor { open_mpi, mpich, pals, other };

/// Determines the flavor from the output of `mpirun --version`.
MpiFlavor mpi_flavor(std::string_view version_text);

/// The major release, 5 for "mpirun (Open MPI) 5.0.7"; 0 if unknown.
int mpi_major(std::string_view version_text);

}  // namespace hortator::launching

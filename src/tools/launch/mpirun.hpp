#pragma once

#include <optional>
#include <string>

#include "launch/mpirun.hpp"

/// Finds the command that starts ranks. If a machine has several MPIs, it must belong to the MPI of the programs, which
/// is the one that Hortator was built with.
namespace hortator::tools {

/// The mpirun (or mpiexec) on PATH if it belongs to that MPI, else the one found at build time; nothing if neither
/// exists.
std::optional<launching::Mpirun> own_mpirun();

/// Whether this installation has a library for an MPI that it was not built with first, and whose mpirun this is.
bool has_library_for(const launching::Mpirun& mpirun);

/// Gives the programs of another MPI that this installation is built for, whose mpirun this is, their library: later
/// processes of this one inherit it.
void load_library_for(const launching::Mpirun& mpirun);

/// Identifies a launcher of any MPI by what it prints for --version.
launching::Mpirun identify_mpirun(const std::string& program);

/// "mpirun" of the MPI that Hortator was built with, without a check that it exists.
launching::Mpirun built_mpirun();

std::string built_mpi();  ///< "Open MPI 4.1.4"

}  // namespace hortator::tools

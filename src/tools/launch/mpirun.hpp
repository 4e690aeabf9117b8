#pragma once

#include <optional>
#include <string>

#include "launch/mpirun.hpp"

/// Which command starts ranks here. Of several MPIs on a machine it has to be that of the programs', which is the one
/// that Hortator was built with.
namespace hortator::tools {

/// The mpirun (or mpiexec) on PATH if it belongs to that MPI, else the one that was found with that MPI at build time;
/// nothing where neither is here.
std::optional<launching::Mpirun> own_mpirun();

/// `program` by what it says of itself, whose ever it is.
launching::Mpirun look_at_mpirun(const std::string& program);

/// What is said of that MPI without looking at the machine: "mpirun", of the kind and release built with.
launching::Mpirun built_mpirun();

std::string built_mpi();  ///< "Open MPI 4.1.4"

}  // namespace hortator::tools

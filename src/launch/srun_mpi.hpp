#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launch/mpi_flavor.hpp"

namespace hortator::launching {

/// Which --mpi srun is to be given, from what `srun --mpi=list` prints; nothing where it offers none that this MPI
/// could find its peers by.
std::optional<std::string> choose_srun_mpi(std::string_view list, MpiFlavor mpi);

}  // namespace hortator::launching

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launch/mpi_flavor.hpp"

namespace hortator::launching {

/// Chooses srun's --mpi from the output of `srun --mpi=list`; nothing if srun offers none that this MPI supports.
std::optional<std::string> choose_srun_mpi(std::string_view list, MpiFlavor mpi);

}  // namespace hortator::launching

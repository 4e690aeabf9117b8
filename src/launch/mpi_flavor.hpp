#pragma once

#include <string_view>

namespace hortator::launch {

/// Whose mpirun it is: they agree on -n and on little else.
enum class MpiFlavor { open_mpi, mpich, other };

/// Read from what `mpirun --version` prints.
MpiFlavor mpi_flavor(std::string_view version_text);

}  // namespace hortator::launch

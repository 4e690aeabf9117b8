#pragma once

#include "mpi/communicator.hpp"

namespace hortator::simulation {

/// A duplicate of the communicator with this Fortran handle, or of all ranks for HORTATOR_WORLD. Throws UsageError for
/// a handle that is not valid, on this rank only: the others cannot be notified. @collective
mpi::Communicator communicator_of(int comm);

}  // namespace hortator::simulation

#include "simulation/communicator_of.hpp"

#include <hortator/hortator.h>

namespace hortator::simulation {

mpi::Communicator communicator_of(int comm) {
  return comm == HORTATOR_WORLD ? mpi::Communicator::world() : mpi::Communicator::of_fortran(comm);
}

}  // namespace hortator::simulation

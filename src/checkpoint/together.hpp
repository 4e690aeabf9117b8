#pragma once

#include "checkpoint/task.hpp"
#include "mpi/communicator.hpp"

namespace hortator::checkpoint {

/// Does what write_part() does through HDF5's MPI driver: all ranks of a file make its structure and write into it with
/// HDF5. An error of the disk on one rank may leave the others waiting inside HDF5. @collective
Record write_part_together(const mpi::Communicator& comm, const Task& task);

}  // namespace hortator::checkpoint

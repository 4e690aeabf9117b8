#include "runtime/identity/topology.hpp"

#include "mpi/collectives.hpp"

namespace hortator::runtime {

Topology find_topology(const mpi::Communicator& comm, const mpi::Communicator& node) {
  const int leaders_here = node.rank() == 0 ? 1 : 0;
  const int leaders_before = mpi::sum_before(comm, leaders_here);
  return {.rank = comm.rank(),
          .size = comm.size(),
          .node = mpi::broadcast(node, leaders_before),
          .nodes = mpi::all_reduce(comm, leaders_here, MPI_SUM),
          .local_rank = node.rank(),
          .local_size = node.size()};
}

}  // namespace hortator::runtime

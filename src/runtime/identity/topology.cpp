#include "runtime/identity/topology.hpp"

#include <algorithm>

#include "mpi/collectives.hpp"
#include "mpi/rehearsed_world.hpp"

namespace hortator::runtime {

namespace {

Topology rehearsed_topology(const mpi::RehearsedWorld& world) {
  const int of_a_node = world.ranks_of_a_node;
  const int node = world.rank / of_a_node;
  return {.rank = world.rank,
          .size = world.ranks,
          .node = node,
          .nodes = (world.ranks + of_a_node - 1) / of_a_node,
          .local_rank = world.rank % of_a_node,
          .local_size = std::min(of_a_node, world.ranks - node * of_a_node)};
}

}  // namespace

Topology find_topology(const mpi::Communicator& comm, const mpi::Communicator& node) {
  if (mpi::is_rehearsed(comm)) return rehearsed_topology(*mpi::rehearsed_world());
  const int leaders_here = node.rank() == 0 ? 1 : 0;
  const int leaders_before = mpi::sum_before(comm, leaders_here);
  return {.rank = comm.rank(),
          .size = comm.size(),
          .node = mpi::broadcast(node, leaders_before),
          .nodes = mpi::all_reduce(comm, leaders_here, mpi::Op::sum),
          .local_rank = node.rank(),
          .local_size = node.size()};
}

}  // namespace hortator::runtime

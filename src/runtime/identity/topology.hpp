#pragma once

#include "mpi/communicator.hpp"

namespace hortator::runtime {

/// The position of a rank among all ranks and nodes. The ranks of a node share memory. Its size does not depend on that
/// of the job.
struct Topology {
  int rank = 0;
  int size = 1;
  int node = 0;  ///< counted in the order of the nodes' first ranks
  int nodes = 1;
  int local_rank = 0;
  int local_size = 1;

  bool is_leader() const { return local_rank == 0; }
  friend bool operator==(const Topology&, const Topology&) = default;
};

/// `node` is comm.node(). Two reductions and one broadcast in the node; no host names are sent. @collective
Topology find_topology(const mpi::Communicator& comm, const mpi::Communicator& node);

}  // namespace hortator::runtime

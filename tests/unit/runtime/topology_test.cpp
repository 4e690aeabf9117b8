#include "runtime/identity/topology.hpp"

#include "mpi/collectives.hpp"
#include "support/catch.hpp"

using namespace hortator;
using runtime::Topology;

TEST_CASE("the ranks of this machine are one node") {
  const auto comm = mpi::Communicator::world();
  const auto found = runtime::find_topology(comm, comm.node());
  CHECK(found == Topology{comm.rank(), comm.size(), 0, 1, comm.rank(), comm.size()});
  CHECK(found.is_leader() == (comm.rank() == 0));
}

TEST_CASE("nodes are counted by their first ranks, however ranks are distributed to them") {
  const auto comm = mpi::Communicator::world();
  for (int nodes = 1; nodes <= comm.size(); ++nodes) {
    // Round robin, and in blocks.
    const auto cyclic = runtime::find_topology(comm, comm.split(comm.rank() % nodes, comm.rank()));
    CHECK(cyclic.node == comm.rank() % nodes);
    CHECK(cyclic.local_rank == comm.rank() / nodes);
    CHECK(cyclic.nodes == nodes);

    const auto blocks = runtime::find_topology(comm, comm.split(comm.rank() / nodes, comm.rank()));
    CHECK(blocks.node == comm.rank() / nodes);
    CHECK(blocks.nodes == (comm.size() + nodes - 1) / nodes);
    CHECK(blocks.local_rank == comm.rank() % nodes);
  }
}

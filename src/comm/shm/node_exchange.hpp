#pragma once

#include <optional>
#include <vector>

#include "comm/exchange_plan.hpp"
#include "comm/shm/node_problem.hpp"
#include "comm/shm/team.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

/// An exchange over ranks of one or several nodes: staging memory within a node, MPI between nodes. `comm` has the
/// ranks of `team` and those of the other nodes. Returns the problem where the ranks' tensors do not fit; then nothing
/// has been sent. The same answer on all ranks. @collective
std::optional<NodeProblem> exchange_over_nodes(const mpi::Communicator& comm, NodeTeam& team,
                                               const std::vector<PeerTensor>& sent,
                                               const std::vector<PeerTensor>& received);

}  // namespace hortator::comm

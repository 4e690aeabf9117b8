#pragma once

#include "comm/nccl/library.hpp"

#include <vector>

#include "mpi/communicator.hpp"

/// The ids by which ranks find each other. The rank that makes an id listens for the others. One listener for thousands
/// of ranks takes minutes, so there is one for every `ranks_an_id` ranks.
namespace hortator::comm {

inline constexpr int ranks_an_id = 128;

/// The ranks that make one id each, spread evenly, in the order in which NCCL expects the ids.
std::vector<int> id_makers(int ranks, int ranks_an_id);

/// Makes the ids and returns them on all ranks. @collective
std::vector<ncclUniqueId> share_ids(const mpi::Communicator& comm, int ranks_an_id);

}  // namespace hortator::comm

#pragma once

#include <nccl.h>

#include <vector>

#include "mpi/communicator.hpp"

/// The ids by which ranks find each other. The rank that makes an id listens for the others: one listener for thousands
/// of ranks takes minutes, so there is one for so many ranks.
namespace hortator::comm {

inline constexpr int ranks_an_id = 128;

/// The ranks that make an id each, in the order in which NCCL wants the ids: as even a spread as can be.
std::vector<int> id_makers(int ranks, int ranks_an_id);

/// The ids, the same on all ranks. @collective
std::vector<ncclUniqueId> share_ids(const mpi::Communicator& comm, int ranks_an_id);

}  // namespace hortator::comm

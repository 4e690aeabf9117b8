#include "comm/nccl/ids.hpp"

#include <algorithm>

#include "comm/nccl/error.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator::comm {

// NCCL's own rule: each id serves a group of consecutive ranks; the first `ranks % ids` groups have one rank more.
std::vector<int> id_makers(int ranks, int ranks_an_id) {
  const int ids = (ranks + ranks_an_id - 1) / ranks_an_id;
  std::vector<int> makers;
  for (int id = 0; id < ids; ++id) makers.push_back(id * (ranks / ids) + std::min(id, ranks % ids));
  return makers;
}

std::vector<ncclUniqueId> share_ids(const mpi::Communicator& comm, int ranks_an_id) {
  const auto makers = id_makers(comm.size(), ranks_an_id);
  ncclUniqueId mine{};
  mpi::all_or_none(comm, [&] {
    if (std::ranges::count(makers, comm.rank()) > 0) check_nccl(ncclGetUniqueId(&mine), "ncclGetUniqueId");
  });
  std::vector<ncclUniqueId> ids;
  for (const int maker : makers) ids.push_back(mpi::broadcast(comm, mine, maker));
  return ids;
}

}  // namespace hortator::comm

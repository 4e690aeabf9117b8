#include "comm/shm/agreement.hpp"

#include "mpi/native.hpp"

namespace hortator::comm {

NodeAgreement::NodeAgreement(std::shared_ptr<const mpi::Communicator> all, const Vote& mine)
    : all_(std::move(all)),
      mine_{.is_in_window = mine.is_in_window ? 1 : 0,
            .accepts = mine.is_refused ? 0 : 1,
            .hash = static_cast<std::int64_t>(mine.hash),
            .inverted_hash = ~static_cast<std::int64_t>(mine.hash)} {
  mpi::check(MPI_Iallreduce(&mine_, &min_, count, MPI_INT64_T, MPI_MIN, mpi::native(*all_), mpi::native(request_)),
             "MPI_Iallreduce");
}

}  // namespace hortator::comm

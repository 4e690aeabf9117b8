#include "comm/shm/agreement.hpp"

#include "mpi/communicator.hpp"

namespace hortator::comm {

NodeAgreement::NodeAgreement(std::shared_ptr<const mpi::Communicator> all, const Vote& mine)
    : all_(std::move(all)),
      mine_{.is_in_window = mine.is_in_window ? 1 : 0,
            .accepts = mine.is_refused ? 0 : 1,
            .hash = static_cast<std::int64_t>(mine.hash),
            .inverted_hash = ~static_cast<std::int64_t>(mine.hash)} {
  mpi::check(MPI_Iallreduce(&mine_, &min_, count, MPI_INT64_T, MPI_MIN, all_->get(), &request_), "MPI_Iallreduce");
}

bool NodeAgreement::is_complete() {
  int done = 0;
  mpi::check(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

}  // namespace hortator::comm

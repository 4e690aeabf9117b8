#include "comm/shm/agreement.hpp"

#include "mpi/error.hpp"

namespace hortator::comm {

// The least of ~x is the most of x.
NodeAgreement::NodeAgreement(std::shared_ptr<const mpi::Communicator> all, const Word& mine)
    : all_(std::move(all)),
      mine_{mine.is_in_window ? 1 : 0, mine.is_refused ? 0 : 1, static_cast<std::int64_t>(mine.hash),
            ~static_cast<std::int64_t>(mine.hash)} {
  mpi::check(MPI_Iallreduce(mine_.data(), least_.data(), 4, MPI_INT64_T, MPI_MIN, all_->get(), &request_),
             "MPI_Iallreduce");
}

bool NodeAgreement::has_come() {
  int done = 0;
  mpi::check(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

}  // namespace hortator::comm

// Ranks that wait for each other within a node keep MPI going: others may wait in MPI for what they have begun there.
#include <ATen/ops/ones.h>

#include <chrono>
#include <thread>

#include "comm/shm/communicator.hpp"
#include "mpi/communicator.hpp"
#include "mpi/native.hpp"
#include "support/catch.hpp"

using namespace hortator;
using comm::NodeCommunicator;
using comm::ReduceOp;

namespace {

// A sum that rank 0 passes on in a later call of MPI than the one that begins it: the others come later.
class SlowSum {
 public:
  explicit SlowSum(const mpi::Communicator& comm) {
    if (comm.rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    mpi::check(MPI_Iallreduce(&mine_, &sum_, 1, MPI_INT, MPI_SUM, mpi::native(comm), &request_), "MPI_Iallreduce");
  }
  int wait() {
    mpi::check(MPI_Wait(&request_, MPI_STATUS_IGNORE), "MPI_Wait");
    return sum_;
  }

 private:
  int mine_ = 1, sum_ = 0;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace

TEST_CASE("a rank that waits for others to enter a collective keeps MPI going") {
  const auto world = mpi::Communicator::world();
  NodeCommunicator communicator(mpi::Communicator::world());
  SlowSum sum(world);
  if (communicator.rank() == 0) communicator.barrier();
  CHECK(sum.wait() == communicator.size());
  if (communicator.rank() != 0) communicator.barrier();
}

TEST_CASE("a rank that waits for others within a collective keeps MPI going") {
  const auto world = mpi::Communicator::world();
  NodeCommunicator communicator(mpi::Communicator::world());
  const auto tensor = at::ones({10});
  auto work = communicator.all_reduce(tensor, ReduceOp::sum);
  SlowSum sum(world);
  if (communicator.rank() == 0) work.wait();
  CHECK(sum.wait() == communicator.size());
  if (communicator.rank() != 0) work.wait();
  CHECK(tensor[9].item<int>() == communicator.size());
}

// More than 2^31 elements, which MPI cannot count in one call: 2 GiB a tensor a rank, so this runs with the long tests
// only.
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/shm/communicator.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

constexpr std::int64_t elements = (std::int64_t{1} << 31) + 5;

void check_reduced_and_broadcast(comm::Communicator& communicator, at::Tensor tensor) {
  tensor.fill_(communicator.rank() + 1);
  communicator.all_reduce(tensor, comm::ReduceOp::sum).wait();
  const int n = communicator.size();
  CHECK(tensor.min().item<int>() == n * (n + 1) / 2);
  CHECK(tensor.max().item<int>() == n * (n + 1) / 2);

  tensor.fill_(communicator.rank() == 0 ? 9 : 0);
  communicator.broadcast(tensor, 0).wait();
  CHECK(tensor.min().item<int>() == 9);
}

}  // namespace

TEST_CASE("more than 2^31 elements are reduced and broadcast over MPI") {
  comm::MpiCommunicator communicator(mpi::Communicator::world());
  check_reduced_and_broadcast(communicator, at::empty({elements}, at::kByte));
}

TEST_CASE("more than 2^31 elements are reduced and broadcast in a node, staged and in the window") {
  comm::NodeCommunicator communicator(mpi::Communicator::world());
  check_reduced_and_broadcast(communicator, at::empty({elements}, at::kByte));
  check_reduced_and_broadcast(communicator, communicator.allocate(elements, at::kByte));
}

// More than 2^31 elements, which MPI cannot count in one call: 2 GiB a tensor a rank, so this runs with the long tests
// only.
#include "comm/mpi_communicator.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("more than 2^31 elements are reduced and broadcast") {
  comm::MpiCommunicator communicator(mpi::Communicator::world());
  const std::int64_t elements = (std::int64_t{1} << 31) + 5;
  auto tensor = at::full({elements}, communicator.rank() + 1, at::kByte);
  communicator.all_reduce(tensor, comm::ReduceOp::sum).wait();
  const int n = communicator.size();
  CHECK(tensor.min().item<int>() == n * (n + 1) / 2);
  CHECK(tensor.max().item<int>() == n * (n + 1) / 2);

  tensor.fill_(communicator.rank() == 0 ? 9 : 0);
  communicator.broadcast(tensor, 0).wait();
  CHECK(tensor.min().item<int>() == 9);
}

// How ranks connect, or give up.
#include <chrono>

#include "backends.hpp"
#include "comm/nccl/communicator.hpp"
#include "comm/nccl/ids.hpp"

using namespace hortator;
using namespace std::chrono_literals;

TEST_CASE("a world of several ids connects") {
  const test::CleanMock mock;
  const auto world = mpi::Communicator::world();
  auto ids = comm::share_ids(world, 2);
  auto handle = std::make_shared<comm::NcclHandle>(comm::NcclOrder::of(-1), ids, world.size(), world.rank(), 30s);
  CHECK(test::mock_nccl().id_makers == comm::id_makers(world.size(), 2));
  comm::NcclCommunicator communicator(mpi::Communicator::world(), c10::kCPU, handle);
  auto tensor = at::ones({1});
  communicator.all_reduce(tensor, comm::ReduceOp::sum).wait();
  CHECK(tensor.item<int>() == world.size());
}

TEST_CASE("when a rank never connects the others give up in time with advice") {
  const test::CleanMock mock;
  const auto world = mpi::Communicator::world();
  if (world.size() == 1) return;
  auto ids = comm::share_ids(world, comm::ranks_an_id);
  if (world.rank() == world.size() - 1) return;
  const auto begin = std::chrono::steady_clock::now();
  const auto error = test::error_of(
      [&] { const comm::NcclHandle handle(comm::NcclOrder::of(-1), ids, world.size(), world.rank(), 300ms); });
  const auto waited = std::chrono::steady_clock::now() - begin;
  CHECK_THAT(error, ContainsSubstring("NCCL was not done with the connection of its ranks after 0.3 s") &&
                        ContainsSubstring("NCCL_SOCKET_IFNAME"));
  CHECK(waited >= 300ms);
  CHECK(waited < 3s);
  CHECK(test::mock_nccl().aborted == 1);
}

TEST_CASE("an NCCL that is too old on one rank makes all ranks throw an error that names its file") {
  const test::CleanMock mock;
  const auto world = mpi::Communicator::world();
  const bool last = world.rank() == world.size() - 1;
  if (last) test::mock_nccl().version = 22703;
  CHECK_THROWS_WITH(test::make_nccl(),
                    ContainsSubstring("The NCCL that was loaded is 2.27.3 (") && ContainsSubstring("test_nccl"));
}

TEST_CASE("ranks with different NCCL versions are refused") {
  const test::CleanMock mock;
  const auto world = mpi::Communicator::world();
  if (world.size() == 1) return;
  if (world.rank() == world.size() - 1) ++test::mock_nccl().version;
  CHECK_THROWS_WITH(test::make_nccl(), ContainsSubstring("The version of NCCL differs between ranks"));
}

TEST_CASE("ranks that share a device are refused on all ranks") {
  const test::CleanMock mock;
  const auto world = mpi::Communicator::world();
  if (world.size() == 1) return;
  const auto own = std::exchange(test::host_device().uuid, "GPU-1");
  CHECK_THROWS_WITH(test::make_nccl(), ContainsSubstring("Ranks 0 and 1 share the GPU GPU-1"));
  test::host_device().uuid = own;
}

TEST_CASE("a rank has one device") {
  const test::CleanMock mock;
  const auto order = comm::NcclOrder::of(0);
  CHECK(comm::NcclOrder::of(0) == order);
  CHECK_THROWS_WITH(comm::NcclOrder::of(1), ContainsSubstring("a rank has one device"));
}

// How ranks connect, or give up.
#include <chrono>
#include <cstdlib>

#include "backends.hpp"
#include "comm/nccl/communicator.hpp"
#include "comm/nccl/ids.hpp"
#include "mpi/collectives.hpp"

using namespace hortator;
using namespace std::chrono_literals;

TEST_CASE("a world of several ids connects") {
  const test::CleanMock mock;
  const auto world = mpi::Communicator::world();
  auto ids = comm::share_ids(world, 2);
  auto handle =
      std::make_shared<comm::NcclHandle>(comm::NcclOrder::of(c10::kCPU), ids, world.size(), world.rank(), 30s);
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
      [&] { const comm::NcclHandle handle(comm::NcclOrder::of(c10::kCPU), ids, world.size(), world.rank(), 300ms); });
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

TEST_CASE("ranks are connected when the communicator is made, so that an operation waits for no other rank") {
  const test::CleanMock mock;
  const auto world = mpi::Communicator::world();
  const auto communicator = test::make_nccl(2s);
  auto tensor = at::ones({2});
  if (world.rank() > 0) mpi::barrier(world);
  auto work = communicator->all_reduce(tensor, comm::ReduceOp::sum);
  if (world.rank() == 0) mpi::barrier(world);
  work.wait();
  CHECK(tensor[0].item<int>() == world.size());
}

TEST_CASE("where ranks may not open each other's devices NCCL does not try to, unless the user says so") {
  const test::CleanMock mock;
  const auto world = mpi::Communicator::world();
  const auto setting = [] {
    const auto* value = std::getenv("NCCL_P2P_DISABLE");
    return std::string(value == nullptr ? "" : value);
  };
  unsetenv("NCCL_P2P_DISABLE");
  test::make_nccl();
  CHECK(setting().empty());
  if (world.rank() == world.size() - 1) test::host_device().openable = 1;  // one rank's is enough
  test::make_nccl();
  CHECK(setting() == (world.size() > 1 ? "1" : ""));
  setenv("NCCL_P2P_DISABLE", "0", 1);
  test::make_nccl();
  CHECK(setting() == "0");
  unsetenv("NCCL_P2P_DISABLE");
  test::host_device().openable = 0;
}

TEST_CASE("a rank has one device") {
  const test::CleanMock mock;
  const c10::Device first(c10::kCUDA, 0);
  const auto order = comm::NcclOrder::of(first);
  CHECK(comm::NcclOrder::of(first) == order);
  CHECK_THROWS_WITH(comm::NcclOrder::of({c10::kCUDA, 1}), ContainsSubstring("a rank has one device"));
}

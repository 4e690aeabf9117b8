#include <thread>

#include "backends.hpp"
#include "comm/nccl/handle.hpp"
#include "comm/nccl/ids.hpp"

using namespace hortator;

TEST_CASE("split communicators work beside their parent and outlive it") {
  const test::CleanMock mock;
  auto whole = test::make_nccl();
  const int rank = whole->rank();
  const int n = whole->size();
  const auto reversed = whole->split(0, -rank);
  CHECK(reversed->rank() == n - 1 - rank);
  const auto mine = whole->split(rank % 2, rank);
  CHECK(mine->size() == (n + 1 - rank % 2) / 2);
  const auto part_of_part = reversed->split(reversed->rank() < 2 ? 0 : 1, reversed->rank());

  auto tensor = at::full({2}, rank);
  reversed->broadcast(tensor, 0).wait();
  CHECK(tensor[0].item<int>() == n - 1);
  whole.reset();
  auto ones = at::ones({1});
  mine->all_reduce(ones, comm::ReduceOp::sum).wait();
  CHECK(ones.item<int>() == mine->size());
  auto all = at::empty({part_of_part->size()}, at::kInt);
  part_of_part->all_gather(all, at::full({1}, reversed->rank(), at::kInt)).wait();
  CHECK(at::equal(all, at::arange(part_of_part->size(), at::kInt).add(reversed->rank() < 2 ? 0 : 2)));
}

TEST_CASE("when a rank is missing in a split the others give up and their communicators are aborted") {
  const test::CleanMock mock;
  const auto world = mpi::Communicator::world();
  if (world.size() == 1) return;
  auto ids = comm::share_ids(world, comm::ranks_an_id);
  const auto patience = std::chrono::milliseconds(300);
  comm::NcclHandle whole(comm::NcclOrder::of(c10::kCPU), ids, world.size(), world.rank(), patience);
  if (world.rank() == world.size() - 1) return;
  CHECK_THROWS_WITH(comm::NcclHandle(whole, 0, 0), ContainsSubstring("NCCL was not done with a split after 0.3 s"));
  CHECK_THROWS_WITH(whole.check(), ContainsSubstring("a split"));
  CHECK(test::mock_nccl().aborted == 1);
}

TEST_CASE("a split begins when the device has done its earlier work") {
  const test::CleanMock mock;
  const auto whole = test::make_nccl();
  const test::StandStill still;
  auto tensor = at::ones({2});
  whole->all_reduce(tensor, comm::ReduceOp::sum).wait();
  std::jthread device([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    test::StandStill::resume();
  });
  CHECK(whole->split(0, whole->rank())->size() == whole->size());
}

TEST_CASE("a split gives up where the device never finishes its earlier work") {
  const test::CleanMock mock;
  const auto whole = test::make_nccl(std::chrono::milliseconds(300));
  test::host_device().is_stuck = true;
  CHECK_THROWS_WITH(whole->split(0, whole->rank()),
                    ContainsSubstring("NCCL was not done with the operations before a split after 0.3 s"));
  test::host_device().is_stuck = false;
  CHECK(test::mock_nccl().aborted == 1);
}

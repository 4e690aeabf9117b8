// A rank that leaves in the middle frees the others of its node, wherever they wait.
#include <chrono>
#include <thread>

#include "backends.hpp"
#include "comm/abandoned.hpp"
#include "comm/nccl/alarm.hpp"
#include "comm/work.hpp"
#include "core/text/text.hpp"
#include "integration/scale/traffic.hpp"
#include "mpi/collectives.hpp"

using namespace hortator;
using namespace std::chrono_literals;
using comm::ReduceOp;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto reason = "it is out of memory";

/// What `call` throws, if it is Abandoned, and soon.
template <typename Call>
std::string freed_by(const Call& call) {
  const auto begin = Clock::now();
  try {
    call();
  } catch (const comm::Abandoned& error) {
    CHECK(Clock::now() - begin < 5s);
    return text::concat(error.rank().value_or(-1), " ", error.what());
  } catch (const std::exception& error) {
    return text::concat("another error: ", error.what());
  }
  return "nothing was thrown";
}

auto names(int rank) { return StartsWith(text::concat(rank, " Rank ", rank, " has left a collective: ", reason)); }

void check_new_ones_work() {
  const auto whole = test::make_nccl();
  const auto part = whole->split(0, whole->rank());
  for (auto* communicator : {whole.get(), part.get()}) {
    auto tensor = communicator->allocate(3, at::kFloat).fill_(1);
    communicator->all_reduce(tensor, ReduceOp::sum).wait();
    CHECK(tensor[2].item<int>() == whole->size());
  }
}

bool aborts_come_to(int expected) {
  const auto deadline = Clock::now() + 5s;
  while (test::mock_nccl().aborted != expected && Clock::now() < deadline) std::this_thread::sleep_for(5ms);
  return test::mock_nccl().aborted == expected;
}

}  // namespace

TEST_CASE("a rank that abandons releases those in any communicator: all are aborted, and new ones work") {
  const auto world = mpi::Communicator::world();
  for (const int leaver : {0, world.size() - 1}) {
    const test::CleanMock mock;
    {
      const auto whole = test::make_nccl();
      const auto part = whole->split(0, whole->rank());
      const auto kept = part->allocate(4, at::kFloat);
      auto tensor = at::ones({2});
      if (world.rank() == leaver) {
        std::this_thread::sleep_for(50ms);
        CHECK(part->abandon(reason));
      } else {
        // The device leaves the operation; the next call reports why.
        CHECK_THAT(freed_by([&] { whole->all_reduce(tensor, ReduceOp::sum).wait(), whole->barrier(); }), names(leaver));
        CHECK(whole->abandon("an exception has ended its work"));
      }
      CHECK(test::mock_nccl().aborted == 2);
      CHECK_THAT(freed_by([&] { part->broadcast(tensor, 0).wait(); }), names(leaver));
      CHECK_THAT(freed_by([&] { whole->barrier(); }), names(leaver));
      CHECK_THAT(freed_by([&] { whole->split(0, 0); }), names(leaver));
      mpi::barrier(world);
    }
    CHECK(test::mock_nccl().destroyed == 0);
    CHECK(test::mock_nccl().memory_blocks == 0);
    check_new_ones_work();
    CHECK(test::mock_nccl().aborted == 2);
    CHECK(test::mock_nccl().registrations == 0);
  }
}

TEST_CASE("a rank that abandons releases those that wait for their device") {
  const test::CleanMock mock;
  const auto world = mpi::Communicator::world();
  const auto whole = test::make_nccl();
  const auto part = whole->split(0, whole->rank());
  test::host_device().is_stuck = true;
  auto tensor = at::zeros({1}, at::kByte);
  auto begun = whole->all_reduce(tensor, ReduceOp::sum);
  mpi::barrier(world);  // NCCL has taken it over on all ranks
  if (world.rank() == 0) CHECK(whole->abandon(reason));
  CHECK(aborts_come_to(2));
  test::host_device().is_stuck = false;
  CHECK_THAT(freed_by([&] { begun.wait(); }), names(0));
}

TEST_CASE("a rank that abandons after it has begun a barrier releases those in the barrier") {
  const test::CleanMock mock;
  const auto world = mpi::Communicator::world();
  const auto whole = test::make_nccl();
  const int last = world.size() - 1;
  test::host_device().is_stuck = true;
  if (world.rank() == last) {
    auto tensor = at::zeros({1}, at::kByte);
    auto begun = whole->all_reduce(tensor, ReduceOp::sum);  // as a barrier does
    std::this_thread::sleep_for(50ms);
    CHECK(whole->abandon(reason));
    CHECK_THAT(freed_by([&] { begun.wait(); }), names(last));
  } else {
    CHECK_THAT(freed_by([&] { whole->barrier(); }), names(last));
  }
  test::host_device().is_stuck = false;
}

TEST_CASE("communicators that go before anybody has looked are aborted, not ended with peers that have left") {
  const test::CleanMock mock;
  const auto world = mpi::Communicator::world();
  auto whole = test::make_nccl();
  auto part = whole->split(0, whole->rank());
  mpi::barrier(world);
  if (world.rank() == 0) CHECK(whole->abandon(reason));
  mpi::barrier(world);
  part.reset();
  whole.reset();
  CHECK(test::mock_nccl().aborted == 2);
  CHECK(test::mock_nccl().destroyed == 0);
}

TEST_CASE("abandoned communicators that still exist do not affect new ones") {
  const test::CleanMock mock;
  const auto world = mpi::Communicator::world();
  const auto old = test::make_nccl();
  mpi::barrier(world);
  if (world.rank() == 0) CHECK(old->abandon(reason));
  mpi::barrier(world);
  check_new_ones_work();
  CHECK(test::mock_nccl().aborted == 1);
}

TEST_CASE("the first rank that leaves is named, whichever leaves later") {
  const auto world = mpi::Communicator::world();
  comm::NcclAlarm alarm(world);
  CHECK_FALSE(alarm.first_reason());
  mpi::barrier(world);
  const int last = world.size() - 1;
  if (world.rank() == last) alarm.ring(reason);
  mpi::barrier(world);
  alarm.ring("an exception has ended its work");
  mpi::barrier(world);
  REQUIRE(alarm.first_reason());
  CHECK(alarm.first_reason()->rank() == last);
  CHECK_THAT(alarm.first_reason()->what(), ContainsSubstring(reason));
}

TEST_CASE("on several nodes a rank cannot leave, and nothing is aborted") {
  const test::CleanMock mock;
  const auto world = mpi::Communicator::world();
  if (world.size() == 1) return;
  scale::pretend_nodes_of(1);
  const auto whole = test::make_nccl();
  scale::pretend_nodes_of(0);
  CHECK_FALSE(whole->abandon(reason));
  auto tensor = at::ones({2});
  whole->all_reduce(tensor, ReduceOp::sum).wait();
  CHECK(tensor[0].item<int>() == world.size());
  CHECK(test::mock_nccl().aborted == 0);
}

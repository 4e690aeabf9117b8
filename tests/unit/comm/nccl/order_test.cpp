// One order for all communicators of a device.
#include <thread>

#include "backends.hpp"
#include "comm/nccl/calls.hpp"
#include "comm/nccl/order.hpp"

using namespace hortator;

TEST_CASE("at most one thread is inside NCCL") {
  const test::CleanMock mock;
  // Alone in its part, a rank needs no other to keep its threads' order.
  const auto whole = test::make_nccl();
  const auto first = whole->split(whole->rank(), 0);
  const auto second = whole->split(whole->rank(), 0);
  test::mock_nccl().linger = std::chrono::microseconds(300);
  const auto work = [](comm::Communicator& communicator) {
    for (int i = 0; i < 20; ++i) {
      auto tensor = at::ones({8});
      communicator.all_reduce(tensor, comm::ReduceOp::sum).wait();
    }
  };
  std::thread other([&] { work(*second); });
  work(*first);
  other.join();
}

TEST_CASE("operations of two communicators can be waited for in another order") {
  const test::CleanMock mock;
  const auto whole = test::make_nccl();
  const auto part = whole->split(whole->rank() % 2, whole->rank());
  for (int i = 0; i < 5; ++i) {
    auto a = at::ones({3});
    auto b = at::ones({3});
    auto in_whole = whole->all_reduce(a, comm::ReduceOp::sum);
    auto in_part = part->all_reduce(b, comm::ReduceOp::sum);
    in_part.wait();
    in_whole.wait();
    CHECK(a[0].item<int>() == whole->size());
    CHECK(b[0].item<int>() == part->size());
  }
}

TEST_CASE("ranks in different orders end with an error in time, not in a hang") {
  const auto whole = test::make_nccl(std::chrono::milliseconds(300));
  if (whole->size() == 1) return;
  const auto one = whole->split(0, whole->rank());  // each connects at its first operation
  const auto other = whole->split(0, whole->rank());
  test::reset_mock_nccl();
  auto& first = whole->rank() == 0 ? *other : *one;
  auto tensor = at::ones({3});
  CHECK_THROWS_WITH(first.all_reduce(tensor, comm::ReduceOp::sum),
                    ContainsSubstring("NCCL was not done with all_reduce after 0.3 s"));
  CHECK(test::mock_nccl().aborted == 3);
  test::reset_mock_nccl();
}

TEST_CASE("a rank that waits for NCCL does not sleep at first, and later sleeps longer") {
  using namespace std::chrono_literals;
  for (const auto waited : {0us, 50us, 150us}) CHECK(comm::nccl_pause(waited) == 0us);
  CHECK(comm::nccl_pause(300us) == 50us);
  CHECK(comm::nccl_pause(4ms) == 500us);
  CHECK(comm::nccl_pause(1h) == 1ms);
}

TEST_CASE("threads that have not chosen their device make no context on the node's first one") {
  const test::CleanMock mock;  // checks the thread's device at each call that uses it
  auto communicator = test::make_nccl();
  auto memory = communicator->allocate(4, at::kFloat);
  std::thread([&] {
    REQUIRE(test::chosen_device() == 0);
    memory.reset();
  }).join();
  CHECK(test::mock_nccl().memory_blocks == 0);
  std::thread([&] {
    REQUIRE(test::chosen_device() == 0);
    communicator.reset();
  }).join();
  CHECK(test::mock_nccl().destroyed == 1);
}

TEST_CASE("the thread that polls for errors uses the communicators' device") {
  constexpr int device = 3;
  const comm::NcclOrder order({c10::kCUDA, device});
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (test::host_device().last_chosen != device && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(test::host_device().last_chosen == device);
}

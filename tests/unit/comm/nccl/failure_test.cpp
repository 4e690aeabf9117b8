// An error on one communicator ends all of the process, and no rank waits for ever.
#include <chrono>
#include <thread>

#include "backends.hpp"
#include "comm/work.hpp"

using namespace hortator;
using namespace std::chrono_literals;
using comm::ReduceOp;

namespace {

bool becomes(const std::function<bool()>& true_at_last) {
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  while (!true_at_last()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

}  // namespace

TEST_CASE("wait() throws an asynchronous error, all communicators are aborted and stay so, and new ones work") {
  const test::CleanMock mock;
  {
    const auto whole = test::make_nccl();
    const auto part = whole->split(0, whole->rank());
    const auto kept = part->allocate(4, at::kFloat);
    auto tensor = at::ones({2});
    auto work = whole->all_reduce(tensor, ReduceOp::sum);
    test::mock_nccl().async_error = ncclRemoteError;
    CHECK_THROWS_WITH(work.wait(), ContainsSubstring("remote process exited") &&
                                       ContainsSubstring("the mock's last words") &&
                                       ContainsSubstring("NCCL_DEBUG=WARN"));
    CHECK(test::mock_nccl().aborted == 2);
    test::mock_nccl().async_error = ncclSuccess;
    CHECK_THROWS_WITH(part->broadcast(tensor, 0), ContainsSubstring("remote process exited"));
    CHECK_THROWS_WITH(part->barrier(), ContainsSubstring("remote process exited"));
    CHECK_THROWS_WITH(whole->split(0, 0), ContainsSubstring("remote process exited"));
    CHECK_THROWS_WITH(whole->allocate(2, at::kFloat), ContainsSubstring("remote process exited"));
    CHECK(test::mock_nccl().aborted == 2);
  }
  CHECK(test::mock_nccl().destroyed == 0);
  CHECK(test::mock_nccl().memory_blocks == 0);

  const auto replacement = test::make_nccl();
  auto tensor = at::ones({2});
  replacement->all_reduce(tensor, ReduceOp::sum).wait();
  CHECK(tensor[0].item<int>() == replacement->size());
}

TEST_CASE("errors are found between calls, and a rank that waits for its device is released") {
  const test::CleanMock mock;
  const auto communicator = test::make_nccl();
  const auto part = communicator->split(0, communicator->rank());
  test::mock_nccl().async_error = ncclRemoteError;
  CHECK(becomes([] { return test::mock_nccl().aborted == 2; }));
  auto tensor = at::ones({2});
  CHECK_THROWS_WITH(communicator->all_reduce(tensor, ReduceOp::sum), ContainsSubstring("remote process exited"));
}

TEST_CASE("a barrier ends with the error too") {
  const test::CleanMock mock;
  const auto communicator = test::make_nccl();
  test::host_device().is_stuck = true;
  std::thread peer_dies([] {
    std::this_thread::sleep_for(50ms);
    test::mock_nccl().async_error = ncclRemoteError;
  });
  CHECK_THROWS_WITH(communicator->barrier(), ContainsSubstring("remote process exited"));
  peer_dies.join();
  test::host_device().is_stuck = false;
}

TEST_CASE("an abort that never returns does not block the rank") {
  const test::CleanMock mock;
  const auto communicator = test::make_nccl(200ms);
  test::mock_nccl().abort_hangs = true;
  test::mock_nccl().async_error = ncclRemoteError;
  auto tensor = at::ones({2});
  const auto begin = std::chrono::steady_clock::now();
  CHECK_THROWS_AS(communicator->all_reduce(tensor, ReduceOp::sum), Error);
  CHECK(std::chrono::steady_clock::now() - begin < 1500ms);
  std::this_thread::sleep_for(2s);  // the mock's abort ends after all
}

TEST_CASE("ranks that call differently end with an error, not in a hang") {
  const auto communicator = test::make_nccl(300ms);
  if (communicator->size() == 1) return;
  test::reset_mock_nccl();
  auto tensor = at::ones({communicator->rank() == 0 ? 3 : 4});
  CHECK_THROWS_AS((communicator->all_reduce(tensor, ReduceOp::sum).wait(), communicator->barrier()), Error);
  CHECK_FALSE(test::mock_nccl().violations.empty());
  CHECK(test::mock_nccl().aborted == 1);
  test::reset_mock_nccl();
}

TEST_CASE("the abort of a part leaves its family intact") {
  const test::CleanMock mock;
  const auto whole = test::make_nccl();
  const auto sibling = whole->split(0, whole->rank());
  try {
    const auto part = whole->split(0, whole->rank());
    throw std::runtime_error("of the program");
  } catch (const std::runtime_error&) {
  }
  CHECK(test::mock_nccl().aborted == 1);
  for (auto* communicator : {whole.get(), sibling.get()}) {
    auto tensor = at::full({2}, 0.5);
    communicator->all_reduce(tensor, ReduceOp::sum).wait();
    CHECK(tensor[1].item<double>() == 0.5 * whole->size());
    auto gathered = at::zeros({whole->size()});
    communicator->all_gather(gathered, at::ones({1})).wait();
    CHECK(gathered.sum().item<int>() == whole->size());
  }
}

TEST_CASE("tensors of an operation without a wait are kept from later work until it is done") {
  const test::CleanMock mock;
  const auto communicator = test::make_nccl();
  auto tensor = at::ones({2});
  try {
    const auto work = communicator->all_reduce(tensor, ReduceOp::sum);
    test::clear_trace();
    throw std::runtime_error("of the program");
  } catch (const std::runtime_error&) {
  }
  CHECK(test::trace() == std::vector<std::string>{"the current stream waits for the mark"});
  CHECK(tensor.use_count() == 1);
}

TEST_CASE("during stack unwinding a communicator is aborted, since its peers may never arrive") {
  const test::CleanMock mock;
  try {
    const auto communicator = test::make_nccl();
    const auto memory = communicator->allocate(4, at::kFloat);
    throw std::runtime_error("of the program");
  } catch (const std::runtime_error&) {
  }
  CHECK(test::mock_nccl().aborted == 1);
  CHECK(test::mock_nccl().destroyed == 0);
}

TEST_CASE("the communicator of a device that never finishes is aborted in the destructor") {
  const test::CleanMock mock;
  {
    const auto communicator = test::make_nccl(200ms);
    test::host_device().is_stuck = true;
  }
  test::host_device().is_stuck = false;
  CHECK(test::mock_nccl().aborted == 1);
}

#include "backends.hpp"
#include "mpi/collectives.hpp"

using namespace hortator;

TEST_CASE("allocated memory comes from NCCL, is registered, and is freed with its last view") {
  const test::CleanMock mock;
  const auto communicator = test::make_nccl();
  {
    auto memory = communicator->allocate(6, at::kFloat);
    CHECK(memory.sizes() == at::IntArrayRef{6});
    CHECK(memory.scalar_type() == at::kFloat);
    CHECK(test::mock_nccl().memory_blocks == 1);
    CHECK(test::mock_nccl().registrations == 1);
    memory.fill_(1);
    communicator->all_reduce(memory, comm::ReduceOp::sum).wait();
    const auto view = memory.narrow(0, 2, 2);
    memory.reset();
    CHECK(test::mock_nccl().memory_blocks == 1);
    CHECK(view[0].item<int>() == communicator->size());
    test::clear_trace();
  }
  CHECK(test::trace() == std::vector<std::string>{"the device is idle"});
  CHECK(test::mock_nccl().memory_blocks == 0);
  CHECK(test::mock_nccl().registrations == 0);
  CHECK(communicator->allocate(0, at::kHalf).numel() == 0);
}

TEST_CASE("memory outlives its communicator") {
  const test::CleanMock mock;
  auto communicator = test::make_nccl();
  auto memory = communicator->allocate(4, at::kLong);
  communicator.reset();
  CHECK(test::mock_nccl().registrations == 0);
  CHECK(test::mock_nccl().memory_blocks == 1);
  memory.fill_(7);
  CHECK(memory.sum().item<int>() == 28);
  memory.reset();
  CHECK(test::mock_nccl().memory_blocks == 0);
}

TEST_CASE("an allocation that fails on one rank throws on all") {
  const test::CleanMock mock;
  const auto communicator = test::make_nccl();
  const int last = communicator->size() - 1;
  if (communicator->rank() == last) test::mock_nccl().memory_error = ncclUnhandledCudaError;
  CHECK_THROWS_WITH(communicator->allocate(4, at::kFloat), ContainsSubstring("NCCL failed in ncclMemAlloc"));
  CHECK(test::mock_nccl().memory_blocks == 0);
  test::mock_nccl().memory_error = ncclSuccess;
  CHECK(communicator->allocate(2, at::kFloat).numel() == 2);  // less may fit
}

namespace {

/// A device with little memory while it lives, on the last rank.
struct LittleMemory {
  LittleMemory(const comm::Communicator& communicator, std::size_t free, std::size_t cached) {
    reset();
    if (communicator.rank() + 1 != communicator.size()) return;
    test::host_device().free_bytes = free;
    test::host_device().cached_bytes = cached;
  }
  ~LittleMemory() { reset(); }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;

 private:
  static void reset() {
    test::host_device().free_bytes = std::size_t{1} << 40;
    test::host_device().cached_bytes = 0;
    test::host_device().cache_releases = 0;
    test::host_device().memory_reports = 0;
  }
};

}  // namespace

TEST_CASE("memory that LibTorch keeps for later is given back when NCCL needs it") {
  const test::CleanMock mock;
  const auto communicator = test::make_nccl();
  const bool is_last = communicator->rank() + 1 == communicator->size();
  const LittleMemory little(*communicator, /*free=*/1000, /*cached=*/5000);
  CHECK(communicator->allocate(1000, at::kFloat).numel() == 1000);
  CHECK(test::host_device().cache_releases == (is_last ? 1 : 0));
  CHECK(test::host_device().memory_reports == 0);
}

TEST_CASE("a device without memory for NCCL is reported as such on all ranks, and this is noticed where others are") {
  const test::CleanMock mock;
  const auto communicator = test::make_nccl();
  const bool is_last = communicator->rank() + 1 == communicator->size();
  const LittleMemory little(*communicator, /*free=*/1000, /*cached=*/500);
  // " out of memory." is what find_executable_batch_size looks for.
  CHECK_THROWS_WITH(communicator->allocate(1000, at::kFloat),
                    ContainsSubstring(" out of memory. NCCL needs 3.9 KiB more"));
  CHECK(test::host_device().memory_reports == (is_last ? 1 : 0));
  CHECK(communicator->allocate(100, at::kFloat).numel() == 100);
}

TEST_CASE("the mock sees registered memory on some ranks only") {
  const auto communicator = test::make_nccl();
  if (communicator->size() == 1) return;
  test::reset_mock_nccl();
  auto memory = communicator->allocate(4, at::kFloat).fill_(1);
  if (communicator->rank() == 0) memory = at::ones({4});
  CHECK_THROWS_AS((communicator->all_reduce(memory, comm::ReduceOp::sum).wait(), communicator->barrier()), Error);
  CHECK_FALSE(test::mock_nccl().violations.empty());
  test::reset_mock_nccl();
}

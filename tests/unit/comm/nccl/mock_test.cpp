// The mock behaves as NCCL's sources say, so that code that passes here has met the real order of events.
#include <functional>
#include <thread>

#include "backends.hpp"
#include "comm/nccl/ids.hpp"
#include "machine/device/device.hpp"
#include "machine/device/stream.hpp"
#include "mock_truth.hpp"
#include "mpi/collectives.hpp"

using namespace hortator;
using namespace std::chrono_literals;

namespace {

ncclResult_t settled(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (ncclCommGetAsyncError(comm, &state) == ncclSuccess && state == ncclInProgress) {
  }
  return state;
}

/// A communicator of all ranks, made and ended by NCCL's own functions.
class RawCommunicator {
 public:
  explicit RawCommunicator(int split_share = 0) : config_(NCCL_CONFIG_INITIALIZER) {
    config_.blocking = 0;
    config_.splitShare = split_share;
    machine::set_current(c10::kCPU);
    const auto world = mpi::Communicator::world();
    auto ids = comm::share_ids(world, comm::ranks_an_id);
    answer_ = ncclCommInitRankScalable(&comm_, world.size(), world.rank(), 1, ids.data(), &config_);
    CHECK(settled(comm_) == ncclSuccess);
  }
  ~RawCommunicator() { end(comm_); }
  RawCommunicator(const RawCommunicator&) = delete;
  RawCommunicator& operator=(const RawCommunicator&) = delete;

  static void end(ncclComm_t comm) {
    ncclGroupStart();
    ncclCommAbort(comm);
    ncclGroupEnd();
  }
  ncclComm_t split() {
    ncclComm_t child = nullptr;
    CHECK(ncclCommSplit(comm_, 0, 0, &child, &config_) == test::truth_of("ncclCommSplit").answer);
    CHECK(std::atomic_ref(child) == nullptr);
    CHECK(settled(comm_) == ncclSuccess);
    while (std::atomic_ref(child) == nullptr) std::this_thread::yield();
    return child;
  }
  ncclComm_t get() const { return comm_; }
  ncclResult_t answer() const { return answer_; }
  ncclConfig_t& config() { return config_; }

 private:
  ncclConfig_t config_;
  ncclComm_t comm_ = nullptr;
  ncclResult_t answer_ = ncclSuccess;
};

cudaStream_t a_stream() { return static_cast<cudaStream_t>(machine::Stream(c10::kCPU).native()); }

ncclResult_t add_over_ranks(std::vector<float>& data, ncclComm_t comm) {
  return ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclSum, comm, a_stream());
}

}  // namespace

TEST_CASE("the mock's functions answer as the table says, which names the place in NCCL's sources") {
  const test::CleanMock mock;
  const int n = mpi::Communicator::world().size();
  const auto expect = [](const char* name, ncclResult_t answer) {
    INFO(name << ": " << test::truth_of(name).source);
    CHECK(answer == test::truth_of(name).answer);
  };
  RawCommunicator whole;
  expect("ncclCommInitRankScalable", whole.answer());
  const auto comm = whole.get();
  std::vector<float> all(static_cast<std::size_t>(n), 1);
  std::vector<float> one(1, 1);
  const auto call = [&](const char* name, const std::function<ncclResult_t()>& function) {
    expect(name, function());
    CHECK(settled(comm) == ncclSuccess);
  };
  call("ncclAllReduce", [&] { return add_over_ranks(one, comm); });
  call("ncclReduceScatter",
       [&] { return ncclReduceScatter(all.data(), one.data(), 1, ncclFloat32, ncclSum, comm, a_stream()); });
  call("ncclAllGather", [&] { return ncclAllGather(one.data(), all.data(), 1, ncclFloat32, comm, a_stream()); });
  call("ncclBroadcast", [&] { return ncclBroadcast(one.data(), one.data(), 1, ncclFloat32, 0, comm, a_stream()); });
  expect("ncclGroupStart", ncclGroupStart());
  CHECK(add_over_ranks(one, comm) == ncclSuccess);  // within a group nothing is under way
  call("ncclGroupEnd", [] { return ncclGroupEnd(); });
  ncclGroupStart();
  CHECK(ncclGroupEnd() == ncclSuccess);
  machine::wait_until_idle(c10::kCPU);

  void* memory = nullptr;
  void* registration = nullptr;
  expect("ncclMemAlloc", ncclMemAlloc(&memory, 64));
  expect("ncclCommRegister", ncclCommRegister(comm, memory, 64, &registration));
  expect("ncclCommDeregister", ncclCommDeregister(comm, registration));
  const auto child = whole.split();
  expect("ncclCommRegister", ncclCommRegister(child, memory, 64, &registration));
  expect("ncclCommFinalize", ncclCommFinalize(child));
  CHECK(settled(child) == ncclSuccess);
  expect("ncclCommDestroy", ncclCommDestroy(child));  // which ends its registrations
  CHECK(test::mock_nccl().registrations == 0);
  expect("ncclMemFree", ncclMemFree(memory));
}

TEST_CASE("the mock's device does an operation after it was taken over, and a split's child appears after its parent") {
  const test::CleanMock mock;
  const int n = mpi::Communicator::world().size();
  RawCommunicator whole;
  test::mock_nccl().device_latency = 20ms;
  std::vector<float> data{0.5};
  add_over_ranks(data, whole.get());
  CHECK(settled(whole.get()) == ncclSuccess);
  CHECK(data[0] == 0.5F);
  CHECK_FALSE(test::is_idle());
  machine::wait_until_idle(c10::kCPU);
  CHECK(data[0] == 0.5F * static_cast<float>(n));

  test::mock_nccl().latency = 5ms;
  ncclComm_t child = nullptr;
  CHECK(ncclCommSplit(whole.get(), 0, 0, &child, &whole.config()) == ncclSuccess);
  CHECK(settled(whole.get()) == ncclSuccess);
  CHECK(std::atomic_ref(child) == nullptr);
  while (std::atomic_ref(child) == nullptr) std::this_thread::yield();
  RawCommunicator::end(child);
}

TEST_CASE("the mock's family that shares has one abort flag: operations of the others leave without an error") {
  const test::CleanMock mock;
  const auto world = mpi::Communicator::world();
  for (const bool shares : {true, false}) {
    RawCommunicator whole(shares ? 1 : 0);
    std::vector<float> first{1};
    add_over_ranks(first, whole.get());
    CHECK(settled(whole.get()) == ncclSuccess);
    machine::wait_until_idle(c10::kCPU);
    const auto child = whole.split();
    RawCommunicator::end(child);
    mpi::barrier(world);
    std::vector<float> data{0.25};
    add_over_ranks(data, whole.get());
    CHECK(settled(whole.get()) == ncclSuccess);
    machine::wait_until_idle(c10::kCPU);
    INFO((shares ? "shares" : "does not share"));
    const auto expected = shares ? 0.25F : 0.25F * static_cast<float>(world.size());
    CHECK(data[0] == expected);
    mpi::barrier(world);
  }
}

TEST_CASE("the mock sees calls by threads that have not chosen their device, and use while in progress") {
  test::reset_mock_nccl();
  RawCommunicator whole;
  const auto child = whole.split();
  CHECK(test::mock_nccl().violations.empty());
  std::thread([&] { RawCommunicator::end(child); }).join();
  REQUIRE(test::mock_nccl().violations.size() == 1);
  CHECK_THAT(test::mock_nccl().violations[0], ContainsSubstring("ncclCommAbort by a thread with device 0"));
  std::vector<float> data{1};
  test::mock_nccl().latency = 5ms;
  add_over_ranks(data, whole.get());
  CHECK(add_over_ranks(data, whole.get()) == ncclInvalidArgument);
  CHECK(settled(whole.get()) == ncclSuccess);
  machine::wait_until_idle(c10::kCPU);
  test::reset_mock_nccl();
}

TEST_CASE("the mock's memory runs out") {
  const test::CleanMock mock;
  const RawCommunicator whole;
  test::host_device().free_bytes = 100;
  void* first = nullptr;
  void* second = nullptr;
  CHECK(ncclMemAlloc(&first, 80) == ncclSuccess);
  CHECK(ncclMemAlloc(&second, 80) == ncclUnhandledCudaError);
  CHECK(ncclMemFree(first) == ncclSuccess);
  CHECK(ncclMemAlloc(&second, 80) == ncclSuccess);
  CHECK(ncclMemFree(second) == ncclSuccess);
  test::host_device().free_bytes = std::size_t{1} << 40;
}

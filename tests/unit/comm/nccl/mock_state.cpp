#include "mock_state.hpp"

#include <mutex>
#include <string_view>

#include "core/text/text.hpp"
#include "host_device.hpp"

namespace hortator::test {
namespace {

std::atomic<int> inside = 0;
std::atomic<int> serial = 0;

}  // namespace

MockNccl& mock_nccl() {
  static MockNccl mock;
  return mock;
}

void reset_mock_nccl() {
  mock_nccl() = {};
  clear_wire();
}

void violation(const std::string& what) {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  mock_nccl().violations.push_back(what);
}

Entered::Entered(const char* call) {
  if (inside.fetch_add(1) != 0) violation(text::concat(call, " while another thread is in NCCL"));
  if (mock_nccl().linger.count() > 0) std::this_thread::sleep_for(mock_nccl().linger);
}
Entered::~Entered() { inside.fetch_sub(1); }

int next_serial() { return ++serial; }
int tag_of(int beginner, int number) { return 1 + beginner * 100000 + number; }

std::atomic<int>& home_device() {
  static std::atomic<int> device = 0;
  return device;
}

void check_device(const char* call, int device) {
  if (!truth_of(call).uses_device || chosen_device() == device) return;
  violation(text::concat(call, " by a thread with device ", chosen_device(), " instead of ", device,
                         ", where it makes a context"));
}

ncclResult_t usable(ncclComm* comm, const char* call) {
  const std::string_view name = call;
  const auto refuse = [&](const char* why) {
    violation(text::concat(call, " on a communicator that ", why));
    return ncclInvalidArgument;
  };
  if (comm == nullptr) return refuse("is null");
  if (comm->is_aborted) return refuse("was aborted");
  if (comm->is_destroyed) return refuse("was destroyed");
  check_device(call, comm->device);
  const bool asks = name == "ncclCommGetAsyncError";
  if (comm->is_finalized && !asks && name != "ncclCommDestroy") return refuse("was finalized");
  const bool registers = name == "ncclCommRegister" || name == "ncclCommDeregister";
  if (!asks && !registers && comm->state == ncclInProgress) return refuse("is still busy");
  const ncclResult_t state = comm->state;  // a communicator in error stays so (init.cc:422)
  return asks || registers || state == ncclInProgress ? ncclSuccess : state;
}

MessageKey next_message(ncclComm* comm) { return {.tag = comm->tag, .number = ++comm->messages}; }

// The upper half of the numbers, with room for 32 ranks and 2^20 messages: collectives never get there.
MessageKey next_message(ncclComm* comm, int sender, int receiver) {
  const int number = ++comm->messages_in_pair[{sender, receiver}];
  return {.tag = comm->tag, .number = 1 << 30 | sender << 25 | receiver << 20 | number};
}

bool wait_in_job(const ncclComm* comm, const std::function<bool()>& is_true) {
  while (!is_true()) {
    if (*comm->abort_flag) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

void join_job(ncclComm* comm) {
  if (comm->job.joinable()) comm->job.join();
}

void begin(ncclComm* comm, std::function<ncclResult_t()> job) {
  join_job(comm);
  comm->state = ncclInProgress;
  comm->job = std::thread([comm, latency = mock_nccl().latency, job = std::move(job)] {
    std::this_thread::sleep_for(latency);
    const auto result = job();
    auto under_way = ncclInProgress;
    comm->state.compare_exchange_strong(under_way, result);  // unless the device has found an error meanwhile
  });
}

}  // namespace hortator::test

#include "comm/nccl_order.hpp"

#include <condition_variable>

#include "base/log.hpp"
#include "base/text.hpp"
#include "comm/nccl_calls.hpp"
#include "comm/nccl_error.hpp"

namespace hortator::comm {

using namespace std::chrono_literals;

std::shared_ptr<NcclOrder> NcclOrder::of(int device) {
  static std::mutex mutex;
  static std::weak_ptr<NcclOrder> current;
  const std::scoped_lock lock(mutex);
  auto order = current.lock();
  if (!order) current = order = std::make_shared<NcclOrder>(device);
  if (order->device_ == device) return order;
  throw UsageError({.what = text::concat("this process has nccl communicators on device ", order->device_,
                                         ", and asked for one on device ", device),
                    .why = "a rank has one device",
                    .hint = "start a rank for each device"});
}

NcclOrder::NcclOrder(int device)
    : device_(device), stream_(device), watcher_([this](const std::stop_token& stop) { watch(stop); }) {}

void NcclOrder::join(Member& member) {
  const std::scoped_lock lock(mutex_);
  members_.push_back(&member);
}

void NcclOrder::run(Member& member, std::string_view operation, const std::function<ncclResult_t()>& calls) {
  const std::scoped_lock lock(mutex_);
  if (member.failure) throw Error(*member.failure);
  auto state = calls();
  if (state == ncclInProgress) state = settle(member.comm, member.patience);
  if (state == ncclSuccess) return;
  const auto problem =
      state == ncclInProgress ? nccl_timeout(operation, member.patience) : nccl_problem(state, operation);
  abort_all(problem);
  throw Error(problem);
}

void NcclOrder::run_alone(const std::function<void()>& calls) {
  const std::scoped_lock lock(mutex_);
  calls();
}

void NcclOrder::check(Member& member) {
  const std::scoped_lock lock(mutex_);
  if (member.failure) throw Error(*member.failure);
  const auto state = nccl_state(member.comm);
  if (state == ncclSuccess) return;
  const auto problem = nccl_problem(state, "an operation under way");
  abort_all(problem);
  throw Error(problem);
}

void NcclOrder::watch(const std::stop_token& stop) {
  std::mutex unused;
  std::condition_variable_any nap;
  while (!stop.stop_requested()) {
    {
      std::unique_lock unshared(unused);
      nap.wait_for(unshared, stop, 100ms, [] { return false; });
    }
    flights_.look();
    // Whoever has the lock asks for errors itself.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) continue;
    for (const auto* member : members_) {
      if (member->comm == nullptr) continue;
      const auto state = nccl_state(member->comm);
      if (state == ncclSuccess || state == ncclInProgress) continue;
      abort_all(nccl_problem(state, "an operation under way"));
      break;
    }
  }
}

void NcclOrder::abort_all(const Problem& problem) {
  std::vector<ncclComm_t> comms;
  auto patience = std::chrono::milliseconds::max();
  for (auto* member : members_) {
    if (!member->failure) member->failure = problem;
    if (member->comm != nullptr) comms.push_back(std::exchange(member->comm, nullptr));
    patience = std::min(patience, member->patience);
  }
  if (!abort_within(comms, patience)) log::warn("NCCL has not come back from its abort; this rank goes on without it");
}

void NcclOrder::leave(Member& member) noexcept {
  const std::scoped_lock lock(mutex_);
  std::erase(members_, &member);
  const auto comm = std::exchange(member.comm, nullptr);
  if (comm == nullptr) return;
  try {
    if (std::uncaught_exceptions() == 0 && finish(comm, member.patience)) return;
    abort_within({&comm, 1}, member.patience);
  } catch (const std::exception& error) {
    log::warn("an NCCL communicator was left as it is: ", error.what());
  }
}

bool NcclOrder::finish(ncclComm_t comm, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const auto end = stream_.mark();
  while (!end.is_reached()) {
    if (nccl_state(comm) != ncclSuccess || std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(100us);
  }
  auto state = ncclCommFinalize(comm);
  if (state == ncclInProgress) state = settle(comm, patience);
  return state == ncclSuccess && ncclCommDestroy(comm) == ncclSuccess;
}

}  // namespace hortator::comm

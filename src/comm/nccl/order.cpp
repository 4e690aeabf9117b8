#include "comm/nccl/order.hpp"

#include <condition_variable>

#include "comm/nccl/calls.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "machine/device/device.hpp"

namespace hortator::comm {

using namespace std::chrono_literals;

std::shared_ptr<NcclOrder> NcclOrder::of(c10::Device device) {
  static std::mutex mutex;
  static std::weak_ptr<NcclOrder> current;
  const std::scoped_lock lock(mutex);
  auto order = current.lock();
  if (!order) current = order = std::make_shared<NcclOrder>(device);
  if (order->device_ == device) return order;
  throw UsageError({.what = text::concat("This process has nccl communicators on device ", int{order->device_.index()},
                                         ", and asked for one on device ", int{device.index()}),
                    .why = "a rank has one device",
                    .hint = "start a rank for each device"});
}

NcclOrder::NcclOrder(c10::Device device)
    : device_(device), stream_(device), watcher_([this](const std::stop_token& stop) { watch(stop); }) {}

void NcclOrder::join(Member& member) {
  const std::scoped_lock lock(mutex_);
  abort_if_peer_left();  // before it joins: earlier alarms do not concern the new member
  members_.push_back(&member);
}

// Many calls of NCCL set the thread's device and set it back, which makes a context on that device. The thread may be
// one that has not chosen its device: tensors are freed on any thread.
std::unique_lock<std::mutex> NcclOrder::enter() {
  machine::set_current(device_);
  return std::unique_lock(mutex_);
}

void NcclOrder::run(Member& member, std::string_view operation, const std::function<ncclResult_t()>& calls) {
  const auto lock = enter();
  abort_if_peer_left();
  if (member.failure) raise(*member.failure);
  auto state = calls();
  if (state == ncclInProgress)
    state = settle(member.comm, member.patience, [this] { return peer_that_left().has_value(); });
  if (state == ncclSuccess) return;
  fail(state == ncclInProgress ? nccl_timeout(operation, member.patience) : nccl_problem(state, operation));
  raise(*member.failure);
}

void NcclOrder::run_alone(const std::function<void()>& calls) {
  const auto lock = enter();
  calls();
}

void NcclOrder::check(Member& member) {
  const std::scoped_lock lock(mutex_);
  abort_if_peer_left();
  if (member.failure) raise(*member.failure);
  const auto state = nccl_state(member.comm);
  if (state == ncclSuccess) return;
  fail(nccl_problem(state, "an operation under way"));
  raise(*member.failure);
}

void NcclOrder::wait_for_device(Member& member, std::string_view operation) {
  wait_until(member, operation, [end = stream_.mark()] { return end.is_reached(); });
}

void NcclOrder::wait_until(Member& member, std::string_view operation, const std::function<bool()>& is_true) {
  const auto deadline = std::chrono::steady_clock::now() + member.patience;
  while (!is_true()) {
    check(member);
    if (std::chrono::steady_clock::now() > deadline) {
      const std::scoped_lock lock(mutex_);
      fail(nccl_timeout(operation, member.patience));
      raise(*member.failure);
    }
    std::this_thread::sleep_for(50us);
  }
}

// A thread starts on device 0, where its calls would make this rank allocate memory of another rank's device.
void NcclOrder::watch(const std::stop_token& stop) {
  machine::set_current(device_);
  std::mutex unused;
  std::condition_variable_any nap;
  while (!stop.stop_requested()) {
    {
      std::unique_lock unshared(unused);
      nap.wait_for(unshared, stop, 100ms, [] { return false; });
    }
    pending_.update();
    // The thread that holds the lock checks for errors itself.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) continue;
    abort_if_peer_left();
    for (const auto* member : members_) {
      if (member->comm == nullptr) continue;
      const auto state = nccl_state(member->comm);
      if (state == ncclSuccess || state == ncclInProgress) continue;
      fail(nccl_problem(state, "an operation under way"));
      break;
    }
  }
}

// Rings before it locks: the thread that holds the lock may be waiting for a peer, and notices the alarm.
bool NcclOrder::abandon(const Member& member, std::string_view reason) noexcept {
  if (!member.alarm) return false;
  member.alarm->ring(reason);
  try {
    const std::scoped_lock lock(mutex_);
    abort_if_peer_left();
  } catch (const std::exception& error) {
    log::warn("NCCL communicators were not aborted: ", error.what());
  }
  return true;
}

// Skips members that have been aborted: their failure is known.
std::optional<Abandoned> NcclOrder::peer_that_left() const {
  for (const auto* member : members_) {
    if (member->comm == nullptr || !member->alarm) continue;
    if (auto left = member->alarm->first_reason()) return left;
  }
  return std::nullopt;
}

void NcclOrder::abort_if_peer_left() {
  if (const auto left = peer_that_left()) abort_all(*left);
}

// A rank rings before it aborts, so an error of NCCL after an alarm is only its consequence.
void NcclOrder::fail(const Problem& problem) {
  abort_if_peer_left();
  abort_all(Error(problem));
}

void NcclOrder::abort_all(const NcclFailure& failure) {
  std::vector<ncclComm_t> comms;
  auto patience = std::chrono::milliseconds::max();
  for (auto* member : members_) {
    if (!member->failure) member->failure = failure;
    if (member->comm != nullptr) comms.push_back(std::exchange(member->comm, nullptr));
    patience = std::min(patience, member->patience);
  }
  if (comms.empty()) return;
  if (!abort_within(device_, comms, patience))
    log::warn("NCCL has not returned from its abort; this rank continues without it");
}

void NcclOrder::leave(Member& member) noexcept {
  const std::scoped_lock lock(mutex_);
  try {
    machine::set_current(device_);
    abort_if_peer_left();
    const bool has_ended = member.comm != nullptr && std::uncaught_exceptions() == 0 && finish(member);
    if (!has_ended) abort_if_peer_left();  // a peer that left may be the reason
    if (!has_ended && member.comm != nullptr) abort_within(device_, {&member.comm, 1}, member.patience);
  } catch (const std::exception& error) {
    log::warn("An NCCL communicator was not destroyed: ", error.what());
  }
  std::erase(members_, &member);
  member.comm = nullptr;
}

bool NcclOrder::finish(const Member& member) {
  const auto deadline = std::chrono::steady_clock::now() + member.patience;
  const auto end = stream_.mark();
  while (!end.is_reached()) {
    const bool is_late = std::chrono::steady_clock::now() > deadline;
    if (nccl_state(member.comm) != ncclSuccess || peer_that_left() || is_late) return false;
    std::this_thread::sleep_for(100us);
  }
  auto state = ncclCommFinalize(member.comm);
  const auto is_pointless = [this] { return peer_that_left().has_value(); };
  if (state == ncclInProgress) state = settle(member.comm, member.patience, is_pointless);
  return state == ncclSuccess && ncclCommDestroy(member.comm) == ncclSuccess;
}

}  // namespace hortator::comm

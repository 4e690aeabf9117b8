#include "comm/nccl/handle.hpp"

#include <atomic>

#include "comm/nccl/calls.hpp"
#include "core/log.hpp"

namespace hortator::comm {
namespace {

// Non-blocking: a blocking call that waits for a peer could not be aborted. Parts do not share their parent's
// resources: they would share its abort flag, and the abort of one would silently end the operations of all.
ncclConfig_t config() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.splitShare = 0;
  return config;
}

}  // namespace

NcclHandle::NcclHandle(std::shared_ptr<NcclOrder> order, std::span<ncclUniqueId> ids, int ranks, int rank,
                       std::chrono::milliseconds patience, std::shared_ptr<NcclAlarm> alarm)
    : order_(std::move(order)), member_{.patience = patience, .alarm = std::move(alarm)} {
  order_->join(member_);
  try {
    order_->run(member_, "the connection of its ranks", [&] {
      auto settings = config();
      return ncclCommInitRankScalable(&member_.comm, ranks, rank, static_cast<int>(ids.size()), ids.data(), &settings);
    });
  } catch (...) {
    order_->leave(member_);
    throw;
  }
}

NcclHandle::NcclHandle(NcclHandle& parent, int color, int key)
    : order_(parent.order_), member_{.patience = parent.member_.patience, .alarm = parent.member_.alarm} {
  // A split makes connections. NCCL may hang where a rank is still in an operation of the parent.
  order_->wait_for_device(parent.member_, "the operations before a split");
  // NCCL writes here from a thread of its own, possibly after this rank has given up: then the memory is leaked.
  auto child = std::make_unique<ncclComm_t>(nullptr);
  try {
    order_->run(parent.member_, "a split", [&] {
      auto settings = config();
      const auto code = ncclCommSplit(parent.member_.comm, color, key, child.get(), &settings);
      return code == ncclSuccess ? ncclInProgress : code;  // NCCL answers success at once; the parent's state tells
    });
    // The child may appear after its parent is done.
    order_->wait_until(parent.member_, "a split",
                       [&] { return std::atomic_ref(*child).load(std::memory_order_acquire) != nullptr; });
  } catch (...) {
    static_cast<void>(child.release());
    throw;
  }
  member_.comm = *child;
  order_->join(member_);
  try {
    order_->run(member_, "a split", [&] { return nccl_state(member_.comm); });
  } catch (...) {
    order_->leave(member_);
    throw;
  }
}

NcclHandle::~NcclHandle() {
  for (const auto& [begin, registration] : std::exchange(registrations_, {})) forget(registration);
  order_->leave(member_);
}

void NcclHandle::run(std::string_view operation, const std::function<ncclResult_t(ncclComm_t, NcclStream)>& call) {
  order_->run(member_, operation,
              [&] { return call(member_.comm, static_cast<NcclStream>(order_->stream().native())); });
}

void NcclHandle::add_memory(void* begin, std::size_t bytes) {
  void* registration = nullptr;
  run("ncclCommRegister",
      [&](ncclComm_t comm, NcclStream) { return ncclCommRegister(comm, begin, bytes, &registration); });
  const std::scoped_lock lock(mutex_);
  registrations_.emplace(begin, registration);
}

void NcclHandle::forget_memory(void* begin) noexcept {
  std::unique_lock lock(mutex_);
  const auto node = registrations_.extract(begin);
  lock.unlock();
  if (node) forget(node.mapped());
}

void NcclHandle::forget(void* registration) noexcept {
  try {
    run("ncclCommDeregister", [&](ncclComm_t comm, NcclStream) { return ncclCommDeregister(comm, registration); });
  } catch (const std::exception&) {
    // Aborted: the registration has ended with the communicator.
  }
}

}  // namespace hortator::comm

#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <unordered_map>

#include "comm/nccl/order.hpp"

namespace hortator::comm {

/// Owns one NCCL communicator. The constructor connects it and the destructor ends it. No rank waits for ever for one
/// that never arrives: each gives up when its patience is over, without asking the others, which could not answer.
class NcclHandle {
 public:
  /// Rank `rank` of `ranks`; `ids` are those of share_ids(); `alarm` belongs to the same ranks. @collective
  NcclHandle(std::shared_ptr<NcclOrder> order, std::span<ncclUniqueId> ids, int ranks, int rank,
             std::chrono::milliseconds patience, std::shared_ptr<NcclAlarm> alarm = nullptr);
  /// The ranks of `parent` with the same color, ordered by key. Waits until the device has done earlier work.
  /// @collective
  NcclHandle(NcclHandle& parent, int color, int key);
  ~NcclHandle();
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;

  const std::shared_ptr<NcclOrder>& order() const { return order_; }
  /// Runs `call` with the communicator and the order's stream, on which NCCL works. See NcclOrder::run.
  void run(std::string_view operation, const std::function<ncclResult_t(ncclComm_t, NcclStream)>& call);
  void check() { order_->check(member_); }
  /// See NcclOrder::abandon.
  bool abandon(std::string_view reason) noexcept { return order_->abandon(member_, reason); }

  /// Registers memory with the network and the other devices until forget_memory() or the end of the communicator.
  void add_memory(void* begin, std::size_t bytes);
  void forget_memory(void* begin) noexcept;

 private:
  void forget(void* registration) noexcept;

  std::shared_ptr<NcclOrder> order_;
  NcclOrder::Member member_;
  std::mutex mutex_;                                // tensors are freed on any thread
  std::unordered_map<void*, void*> registrations_;  // begin of the memory -> NCCL's handle
};

}  // namespace hortator::comm

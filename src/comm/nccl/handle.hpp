#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <unordered_map>

#include "comm/nccl/order.hpp"

namespace hortator::comm {

/// Owns one NCCL communicator: connected when it is made, ended with it. No rank is left waiting for one that never
/// comes: each gives up by itself when its patience is over, without asking the others, who could not answer.
class NcclHandle {
 public:
  /// `rank` of `ranks`; `ids` as share_ids gave them; `alarm` is that of the same ranks. @collective
  NcclHandle(std::shared_ptr<NcclOrder> order, std::span<ncclUniqueId> ids, int ranks, int rank,
             std::chrono::milliseconds patience, std::shared_ptr<NcclAlarm> alarm = nullptr);
  /// The ranks of `parent` with the same color, ordered by key. It shares the parent's connections. Waits for what the
  /// device was given before. @collective
  NcclHandle(NcclHandle& parent, int color, int key);
  ~NcclHandle();
  NcclHandle(const NcclHandle&) = delete;
  NcclHandle& operator=(const NcclHandle&) = delete;

  const std::shared_ptr<NcclOrder>& order() const { return order_; }
  /// Lets NCCL work on the order's stream. `call` gets the communicator and that stream.
  void run(std::string_view operation, const std::function<ncclResult_t(ncclComm_t, cudaStream_t)>& call);
  void check() { order_->check(member_); }
  /// NcclOrder::abandon
  bool abandon(std::string_view reason) noexcept { return order_->abandon(member_, reason); }

  /// Makes memory known to the network and the other devices, until it is forgotten or the communicator ends.
  void add_memory(void* begin, std::size_t bytes);
  void forget_memory(void* begin) noexcept;

 private:
  void forget(void* registration) noexcept;

  std::shared_ptr<NcclOrder> order_;
  NcclOrder::Member member_;
  std::mutex mutex_;                                // tensors go on any thread
  std::unordered_map<void*, void*> registrations_;  // where the memory begins, NCCL's name for it
};

}  // namespace hortator::comm

#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string_view>

#include "comm/abandoned.hpp"
#include "mpi/communicator.hpp"
#include "mpi/shared_memory.hpp"

namespace hortator::comm {

/// Notifies the other ranks that this one leaves in the middle of a collective: with NCCL only they would wait for
/// ever. A communicator and all its parts have one alarm. It is an integer in memory that the ranks of a node share:
/// checking it costs next to nothing, while a message would need a thread that waits for it.
class NcclAlarm {
 public:
  /// Null where the ranks are on several nodes or cannot share memory. @collective
  static std::shared_ptr<NcclAlarm> over(const mpi::Communicator& world);
  /// All ranks of `node` share memory. @collective
  explicit NcclAlarm(const mpi::Communicator& node);

  /// Publishes that this rank leaves. Only the first rank that rings and its first reason are kept, since the ranks
  /// that it releases may leave in turn. Callable from any thread.
  void ring(std::string_view reason) noexcept;
  /// The first rank that has left with its reason, or empty. Callable from any thread.
  std::optional<Abandoned> first_reason() const;

 private:
  struct RankSlot {
    std::atomic<int> first;  ///< only in rank 0's slot: the first rank that rang, counted from 1; 0: none
    std::array<char, 256> reason;
  };
  RankSlot& slot(int rank) const { return *reinterpret_cast<RankSlot*>(memory_.part(rank)); }

  int rank_;
  mpi::SharedMemory memory_;
  std::atomic_flag has_rung_;
};

}  // namespace hortator::comm

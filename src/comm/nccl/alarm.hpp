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

/// What a rank rings when it leaves in the middle: NCCL itself would let the others wait for it. One for a communicator
/// and all its parts. It is a word in the memory that ranks of a node share, since a message would have to be waited
/// for; looking at it costs next to nothing.
class NcclAlarm {
 public:
  /// None where ranks are on several nodes, or have no memory in common. @collective
  static std::shared_ptr<NcclAlarm> over(const mpi::Communicator& world);
  /// All ranks of `node` share memory. @collective
  explicit NcclAlarm(const mpi::Communicator& node);

  /// From any thread. The first rank that rings counts, with its first reason: those that it frees may leave in turn.
  void ring(std::string_view reason) noexcept;
  /// Who has left, if anybody has. From any thread.
  std::optional<Abandoned> heard() const;

 private:
  struct Slot {
    std::atomic<int> first;  ///< in rank 0's alone: the rank that rang, counted from 1
    std::array<char, 256> reason;
  };
  Slot& slot(int rank) const { return *reinterpret_cast<Slot*>(memory_.part(rank)); }

  int rank_;
  mpi::SharedMemory memory_;
  std::atomic_flag has_rung_;
};

}  // namespace hortator::comm

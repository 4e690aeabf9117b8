#pragma once

#include <cstdint>
#include <memory>

#include "mpi/communicator.hpp"
#include "mpi/request.hpp"

namespace hortator::comm {

/// Finds out whether the ranks of all nodes have reached the same collective: one reduction that no rank waits for.
class NodeAgreement {
 public:
  /// What this rank contributes.
  struct Vote {
    bool is_in_window = false;  ///< the ranks of its node have the operand at the same position of the window
    bool is_refused = false;    ///< it cannot take part
    std::uint64_t hash = 0;     ///< of the call
  };
  /// Starts the reduction. @collective, in the same order on all ranks
  NodeAgreement(std::shared_ptr<const mpi::Communicator> all, const Vote& mine);

  /// Whether the result is known. Does not wait.
  bool is_complete() { return request_.is_complete(); }
  /// Whether all ranks make the same call and none has refused. Only once it is complete.
  bool is_alike() const { return min_.accepts == 1 && min_.hash == ~min_.inverted_hash; }
  /// Whether the operand is in the window on all nodes. Only once it is complete.
  bool is_in_window() const { return min_.is_in_window == 1; }

  /// Leaks an agreement that is not complete: MPI cannot be asked to give its buffers back.
  struct Drop {
    void operator()(NodeAgreement* agreement) const noexcept {
      if (agreement->request_.is_none()) delete agreement;
    }
  };

 private:
  /// What travels. Each number is reduced to its minimum over all ranks.
  struct Numbers {
    std::int64_t is_in_window = 0;   ///< 0 or 1
    std::int64_t accepts = 0;        ///< 0 or 1
    std::int64_t hash = 0;           ///< its minimum ...
    std::int64_t inverted_hash = 0;  ///< ... and ~ of its maximum, which are equal where all ranks have the same hash
  };
  static constexpr int count = sizeof(Numbers) / sizeof(std::int64_t);
  static_assert(count == 4);

  std::shared_ptr<const mpi::Communicator> all_;
  Numbers mine_;
  Numbers min_;
  mpi::Request request_ = {};
};

using NodeAgreementPtr = std::unique_ptr<NodeAgreement, NodeAgreement::Drop>;

}  // namespace hortator::comm

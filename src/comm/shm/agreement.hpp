#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>

#include "mpi/communicator.hpp"

namespace hortator::comm {

/// Whether the ranks of all nodes have come to the same collective, in one reduction that nobody need wait for.
class NodeAgreement {
 public:
  /// What one rank knows.
  struct Word {
    bool is_in_window = false;
    bool is_refused = false;
    std::uint64_t hash = 0;  ///< of the call
  };
  /// @collective, in the same order on all ranks
  NodeAgreement(std::shared_ptr<const mpi::Communicator> all, const Word& mine);

  bool has_come();
  bool is_alike() const { return least_[1] == 1 && least_[2] == ~least_[3]; }  ///< and no rank has refused
  bool is_in_window() const { return least_[0] == 1; }

  /// Nobody can take back from MPI what it was given.
  struct Drop {
    void operator()(NodeAgreement* agreement) const noexcept {
      if (agreement->request_ == MPI_REQUEST_NULL) delete agreement;
    }
  };

 private:
  std::shared_ptr<const mpi::Communicator> all_;
  std::array<std::int64_t, 4> mine_;
  std::array<std::int64_t, 4> least_{};
  MPI_Request request_ = MPI_REQUEST_NULL;
};

using NodeAgreementPtr = std::unique_ptr<NodeAgreement, NodeAgreement::Drop>;

}  // namespace hortator::comm

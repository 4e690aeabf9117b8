#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.hpp"
#include "paging/pager.hpp"
#include "parallel/zero/absent_arrays.hpp"
#include "parallel/zero/peer_store.hpp"

namespace hortator::parallel {

/// Sharded arrays: each rank keeps a part. A rank has a whole array only while operators use it, in a frame of its own,
/// and for as long as its budget allows: all ranks gather it together (peer_store.hpp). Of what operators write to it,
/// other ranks only get what lies in this rank's part.
///
/// Between devices the next array is fetched while operators use the present one. On CPUs nothing is read ahead: MPI
/// only makes progress while it is called, so another frame would gain nothing.
class PeerArrays {
 public:
  struct Options {
    std::uint64_t resident_bytes = 0;  ///< of whole arrays in memory at a time; 0: of the two largest, on devices three
    int first_rank = 0;                ///< the first of these ranks among all, for messages
    int rank_stride = 1;               ///< between these ranks among all
    const mpi::Communicator* host = nullptr;  ///< the same ranks, where parts are on devices: see PeerStore
  };
  /// Each array has `peers.size()` parts of the same size; `parts` are this rank's, in memory or paged, on the device
  /// on which the arrays will be.
  PeerArrays(comm::Communicator& peers, const std::vector<ArraySpec>& specs, std::vector<at::Tensor> parts,
             const Options& options);

  const at::Tensor& array(std::size_t i) const { return arrays_[i].tensor; }
  /// Must be called by all ranks at the same point after they have written to their parts: the next use of an array
  /// gathers it again.
  void parts_changed() { pager_->forget_all(); }
  paging::PageTraffic::Counters counters() const { return pager_->counters(); }

 private:
  std::vector<paging::NamedTensor> arrays_;
  std::unique_ptr<paging::Pager> pager_;
};

}  // namespace hortator::parallel

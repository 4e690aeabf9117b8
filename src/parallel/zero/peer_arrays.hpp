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
/// and for as long as its budget allows: all ranks gather it together (peer_store.hpp). Other ranks get only what
/// operators write to this rank's part.
///
/// Arrays that are gathered in int8 blocks have rounded values while operators only read them, the same on all ranks.
/// What needs exact ones holds the array with Access::read_exact meanwhile.
///
/// The next array, in the order of the last pass, is gathered while operators use the present one. On CPUs this needs a
/// back end that shares memory: its transfers between nodes progress when an operator begins or ends. The frames then
/// lie in memory that the ranks of a node share, so that each byte comes to a node once.
class PeerArrays {
 public:
  struct Options {
    std::uint64_t resident_bytes = 0;  ///< of whole arrays in memory at a time; 0: of the two largest, or of three if
                                       ///< the next one is gathered ahead
    int first_rank = 0;                ///< the first of these ranks among all, for messages
    int rank_stride = 1;               ///< between these ranks among all
    const mpi::Communicator* host = nullptr;  ///< the same ranks, where parts are on devices: see PeerStore
    bool casts = false;                       ///< PeerStore::Ranks::casts
    bool gathers_ahead = false;               ///< where the back end makes progress meanwhile; on devices always so
  };
  /// Each array has `peers.size()` parts of the same size; `parts` are this rank's, in memory or paged, on the device
  /// on which the arrays will be. @collective
  PeerArrays(comm::Communicator& peers, const std::vector<ArraySpec>& specs, std::vector<at::Tensor> parts,
             const Options& options);

  const at::Tensor& array(std::size_t i) const { return arrays_[i].tensor; }
  /// Must be called by all ranks at the same point after they have written to their parts: the next use of an array
  /// gathers it again.
  void parts_changed() { pager_->forget_all(); }
  paging::PageTraffic::Counters counters() const { return pager_->counters(); }

 private:
  std::vector<paging::NamedTensor> arrays_;
  at::Tensor frames_;  ///< undefined: the pager allocates frames
  std::unique_ptr<paging::Pager> pager_;
};

}  // namespace hortator::parallel

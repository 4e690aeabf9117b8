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

/// Arrays of which each rank keeps a part. A rank has a whole one only while operators use it, in a frame of its own,
/// and so many others as fit: it is brought together by all ranks (peer_store.hpp). What operators write to it is not
/// for the others but for what lies in this rank's part.
///
/// Between devices the next one is on its way while operators use one. On CPUs nothing is read ahead: MPI carries while
/// somebody calls it, so a further frame would gain nothing.
class PeerArrays {
 public:
  struct Options {
    std::uint64_t resident_bytes = 0;  ///< of whole arrays in memory at a time; 0: of the two largest, three on devices
    int first_rank = 0;                ///< how these ranks are counted in messages
    const mpi::Communicator* host = nullptr;  ///< the same ranks, where parts are on devices: see PeerStore
  };
  /// Each array has `peers.size()` parts of the same size; `parts` are this rank's, in memory or paged, on the
  /// device on which the arrays will be.
  PeerArrays(comm::Communicator& peers, const std::vector<ArraySpec>& specs, std::vector<at::Tensor> parts,
             const Options& options);

  const at::Tensor& array(std::size_t i) const { return arrays_[i].tensor; }
  /// All ranks may have written to their parts: who uses an array from now on gets what they hold. All ranks call it at
  /// the same point.
  void parts_changed() { pager_->forget_all(); }
  paging::PageTraffic::Counters counters() const { return pager_->counters(); }

 private:
  std::vector<paging::NamedTensor> arrays_;
  std::unique_ptr<paging::Pager> pager_;
};

}  // namespace hortator::parallel

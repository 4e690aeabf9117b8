#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.hpp"
#include "shard/absent_arrays.hpp"
#include "shard/pager.hpp"
#include "shard/peer_store.hpp"

namespace hortator::shard {

/// Arrays of which each rank keeps a part. A rank has a whole one only while operators use it, in a frame of its own,
/// and so many others as fit: it is brought together by all ranks (peer_store.hpp). What operators write to it is not
/// for the others but for what lies in this rank's part.
///
/// Nothing is read ahead: the back ends between nodes carry while somebody waits, so a second frame would gain nothing.
class PeerArrays {
 public:
  struct Options {
    std::uint64_t resident_bytes = 0;  ///< of whole arrays in memory at a time; 0: of the two largest
    int first_rank = 0;                ///< how these ranks are counted in messages
  };
  /// Each array has `peers.size()` parts of the same size, which are zeros at first.
  PeerArrays(comm::Communicator& peers, const std::vector<ArraySpec>& specs, const Options& options);

  const at::Tensor& array(std::size_t i) const { return arrays_[i].tensor; }
  /// This rank's: to read and to write at will.
  const at::Tensor& part(std::size_t i) const { return store_->part(i); }
  /// All ranks may have written to their parts: who uses an array from now on gets what they hold. All ranks call it at
  /// the same point.
  void parts_changed() { pager_->forget_all(); }
  /// All ranks are about to use them: if they went different ways before, they begin anew.
  void begin_use();

  PageTraffic::Counters counters() const { return pager_->counters(); }

 private:
  std::vector<NamedTensor> arrays_;
  PeerStore* store_ = nullptr;  ///< the pager's
  std::unique_ptr<Pager> pager_;
};

}  // namespace hortator::shard

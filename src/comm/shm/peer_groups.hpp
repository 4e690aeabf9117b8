#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/mpi/mpi_communicator.hpp"
#include "comm/shm/kernels/reduce_kernels.hpp"
#include "comm/shm/pending_transfer.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

/// The ways between nodes: a lane joins the ranks of all nodes that have the same number within their node. Each lane
/// carries a slice of the data, so that every core and every network port works. There are as many lanes as the
/// smallest node has ranks; the other ranks own no slice.
///
/// Whatever begins here is @collective over the lane, one after the other, in the same order on all of its ranks. A
/// flight keeps the lanes alive.
class NodePeerGroups : public std::enable_shared_from_this<NodePeerGroups> {
 public:
  /// @collective over `comm`
  NodePeerGroups(const mpi::Communicator& comm, const mpi::Communicator& node);

  int count() const { return count_; }
  bool has_slice() const { return has_slice_; }
  bool include_all_ranks() const { return include_all_ranks_; }  ///< all nodes have as many ranks
  /// Can data move on while nobody waits for it? Between many nodes MPI carries them, and waits.
  bool can_move_in_background() const;

  /// Part of a slice, in elements.
  using Step = std::function<void(std::int64_t begin, std::int64_t count)>;

  /// This rank's slice of what is reduced: `prepare` is called for each block before it leaves, `publish` when its
  /// result is there; other blocks are on their way meanwhile.
  struct Slice {
    std::byte* data = nullptr;
    std::int64_t elements = 0;
    at::ScalarType type = at::kFloat;
    kernels::Reduction what = {};
    Step prepare = {};
    Step publish = {};
    std::shared_ptr<const void> memory = {};  ///< where it lies
  };
  /// The slice becomes the reduction of the nodes' slices, in the nodes' order.
  void all_reduce(const Slice& slice);
  PendingTransferPtr start_all_reduce(const Slice& slice);

  /// One rank's part of a tensor that has a part for each rank.
  struct Parts {
    std::int64_t elements = 0;  ///< of a part
    std::int64_t element_bytes = 1;
    std::vector<std::shared_ptr<const void>> memory = {};  ///< where they lie
  };
  /// `combine` writes this node's sum of rank `part`'s part, or of a piece of it, to a place.
  using Combine = std::function<void(int part, std::int64_t begin, std::int64_t count, std::byte* to)>;
  /// `output` becomes this rank's part of the reduction of what all nodes combine, in the nodes' order.
  PendingTransferPtr start_reduce_scatter(const Parts& parts, const kernels::Reduction& what, const Combine& combine,
                                          std::byte* output);
  /// What has come of rank `part`'s part, or this rank's own.
  using Receive = std::function<void(int part, std::int64_t begin, std::int64_t count, const std::byte* from)>;
  PendingTransferPtr start_all_gather(const Parts& parts, const std::byte* input, const Receive& receive);

 private:
  PendingTransfer::Route exchange_of(const Slice& slice);
  PendingTransfer::Route tree_of(const Slice& slice);
  void send_shares(PendingTransfer::Block& block, std::byte* begin, const kernels::Reduction& what);
  void reduce_own_share(const PendingTransfer::Block& block, std::byte* begin, const kernels::Reduction& what) const;
  void send_result(PendingTransfer::Block& block, std::byte* begin);

  int count_;
  bool has_slice_;
  bool include_all_ranks_;
  mpi::Communicator group_;  ///< shares travel here, results there: each in the blocks' order, whatever the two's is
  mpi::Communicator results_;
  MpiCommunicator mpi_;     ///< over the lane
  std::vector<int> ranks_;  ///< of the lane, by their numbers in the job
  int nodes_;
};

}  // namespace hortator::comm

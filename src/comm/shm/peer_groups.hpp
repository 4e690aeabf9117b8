#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/kernels/reduce_kernels.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/shm/pending_transfer.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

/// Traffic between nodes. A peer group holds the ranks that have the same number within their node, one of each node.
/// Each group carries a slice of the data, so that every core and every network port works. There are as many groups as
/// the smallest node has ranks; the other ranks own no slice.
///
/// Every transfer is @collective over this rank's group and starts in the same order on all of its ranks. A transfer
/// keeps its peer groups alive.
class NodePeerGroups : public std::enable_shared_from_this<NodePeerGroups> {
 public:
  /// @collective over `comm`
  NodePeerGroups(const mpi::Communicator& comm, const mpi::Communicator& node);

  int count() const { return count_; }
  /// Whether this rank is in a group that carries a slice.
  bool has_slice() const { return has_slice_; }
  bool include_all_ranks() const { return include_all_ranks_; }  ///< all nodes have equally many ranks
  /// Whether transfers can progress in the background. Between many nodes blocking calls of MPI carry the data.
  bool can_move_in_background() const;

  /// Called for a range of a slice, in elements.
  using Step = std::function<void(std::int64_t begin, std::int64_t count)>;

  /// This rank's slice of the operand of a reduction. `prepare` is called for each block before it is sent, `publish`
  /// when its result is there. Other blocks travel meanwhile.
  struct Slice {
    std::byte* data = nullptr;
    std::int64_t elements = 0;
    at::ScalarType type = at::kFloat;
    kernels::Reduction what = {};
    Step prepare = {};
    Step publish = {};
    std::shared_ptr<const void> memory = {};  ///< keeps `data` alive
  };
  /// Replaces the slice by the reduction of the nodes' slices, in node order.
  void all_reduce(const Slice& slice);
  PendingTransferPtr start_all_reduce(const Slice& slice);

  /// A tensor that has a part for each rank.
  struct Parts {
    std::int64_t elements = 0;  ///< of a part
    std::int64_t element_bytes = 1;
    std::vector<std::shared_ptr<const void>> memory = {};  ///< kept alive
  };
  /// Writes this node's sum of a range of rank `part`'s part to `to`.
  using Combine = std::function<void(int part, std::int64_t begin, std::int64_t count, std::byte* to)>;
  /// Writes this rank's part of the reduction to `output`: the sum of what all nodes combine, in node order.
  PendingTransferPtr start_reduce_scatter(const Parts& parts, const kernels::Reduction& what, const Combine& combine,
                                          std::byte* output);
  /// Called with a range of rank `part`'s part that has been received, this rank's own included.
  using Receive = std::function<void(int part, std::int64_t begin, std::int64_t count, const std::byte* from)>;
  PendingTransferPtr start_all_gather(const Parts& parts, const std::byte* input, const Receive& receive);

 private:
  /// Two calls of MPI a block, however many nodes there are.
  PendingTransfer::Route exchange_route(const Slice& slice);
  /// One block, reduced by MPI.
  PendingTransfer::Route tree_route(const Slice& slice);
  void send_ranges(PendingTransfer::Block& block, std::byte* begin, const kernels::Reduction& what);
  void reduce_own_range(const PendingTransfer::Block& block, std::byte* begin, const kernels::Reduction& what) const;
  void send_result(PendingTransfer::Block& block, std::byte* begin);

  int count_;
  bool has_slice_;
  bool include_all_ranks_;
  mpi::Communicator group_;       ///< carries operands, in the order of the blocks
  mpi::Communicator results_;     ///< carries results, in the order of the blocks: their calls mix with those of group_
  MpiCommunicator mpi_;           ///< over the group
  std::vector<int> group_ranks_;  ///< the group's ranks by their numbers in `comm`
  int nodes_;
};

}  // namespace hortator::comm

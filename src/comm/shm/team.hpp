#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/exchange_plan.hpp"
#include "comm/kernels/reduce_kernels.hpp"
#include "comm/shm/board.hpp"
#include "comm/shm/peer_groups.hpp"
#include "comm/shm/window.hpp"
#include "core/range.hpp"
#include "mpi/shared_memory.hpp"

namespace hortator::comm {

/// The ranks of one node, the memory that they share, and the collectives on it. All functions are @collective over the
/// node; reductions cover all ranks of `comm`.
class NodeTeam {
 public:
  /// Tensors outside the window are copied through `staging_bytes` of memory a rank. Keeps a reference to `comm`.
  /// @collective over `comm`
  NodeTeam(const mpi::Communicator& comm, std::size_t staging_bytes);

  bool has_one_node() const { return !peer_groups_; }  ///< `comm` has no ranks on other nodes
  /// Whether reductions between nodes can progress in the background.
  bool can_move_in_background() const { return peer_groups_ && peer_groups_->can_move_in_background(); }
  /// The same for tensors that have a part for each rank.
  bool can_move_parts_in_background() const { return can_move_in_background() && peer_groups_->include_all_ranks(); }
  /// Keeps the communicators between nodes for as long as the process lives. Must be called where a transfer is left
  /// that others have begun: their messages would reach a later communicator that got the number of a freed one.
  void keep_peer_groups() const {
    if (peer_groups_) new std::shared_ptr<NodePeerGroups>(peer_groups_);
  }
  int rank() const { return node_.rank(); }
  int size() const { return node_.size(); }
  NodeBoard& board() { return board_; }
  NodeWindow& window() { return window_; }

  /// Reduces in place the ranks' tensors at `position`. Each rank reads its slice from all ranks' memory and writes the
  /// result to all ranks' memory; with several nodes it reduces the slice over them in between.
  void reduce_in_window(const WindowPosition& position, std::int64_t elements, at::ScalarType type,
                        const kernels::Reduction& what);
  /// The same for tensors outside the window, block by block through staging memory.
  void reduce_staged(std::byte* data, std::int64_t elements, at::ScalarType type, const kernels::Reduction& what);
  /// Writes this rank's part of the reduction to `output`. The operand at `position` holds the parts of all ranks one
  /// after the other.
  void reduce_part_in_window(const WindowPosition& position, std::byte* output, std::int64_t elements,
                             const kernels::Reduction& what);
  void reduce_part_staged(const std::byte* input, std::byte* output, std::int64_t elements,
                          const kernels::Reduction& what);
  /// The same over several nodes in the background, for tensors in the window. Null: this rank has no slice to send.
  PendingTransferPtr start_reduce(const WindowPosition& position, std::int64_t elements, at::ScalarType type,
                                  const kernels::Reduction& what);
  PendingTransferPtr start_reduce_part(const WindowPosition& position, const at::Tensor& output,
                                       const kernels::Reduction& what);

  /// Copies this rank's `bytes` to its range of the outputs of all ranks, except where they are there already.
  void gather_in_window(const WindowPosition& output, const std::byte* input, std::size_t bytes);
  void gather_staged(std::byte* output, const std::byte* input, std::size_t bytes);
  /// Sends the bytes `to[r]` to each rank r of the node, and receives `from[r]`, which has as many bytes as r sends.
  void exchange_staged(const std::vector<PeerBuffers::Bytes>& to, const std::vector<PeerBuffers::Bytes>& from);
  PendingTransferPtr start_gather(const WindowPosition& output, const at::Tensor& input);

  /// All ranks have the tensor at `position`.
  void broadcast_in_window(const WindowPosition& position, std::size_t bytes, int root);
  void broadcast_staged(std::byte* data, std::size_t bytes, int root);

 private:
  /// This turn's half of a rank's staging memory. The halves are used in turn, so that a rank that is a block ahead
  /// does not overwrite what others still read.
  std::byte* stage_of(int rank) const { return staging_.part(rank) + (turn_ % 2) * half_bytes_; }
  void reduce(const kernels::Reduction& what, const std::vector<const std::byte*>& inputs,
              const std::vector<std::byte*>& outputs, std::int64_t elements) const;
  /// The addresses, rank by rank, of `position` plus `offset` bytes.
  std::vector<const std::byte*> inputs_at(const WindowPosition& position, std::size_t offset) const;
  std::vector<std::byte*> outputs_at(const WindowPosition& position, std::size_t offset) const;
  void reduce_block_on_each_rank(std::byte* block, std::int64_t elements, const kernels::Reduction& what) const;
  void reduce_block_by_slices(std::byte* block, std::int64_t elements, at::ScalarType type,
                              const kernels::Reduction& what);

  NodePeerGroups::Slice slice_in_window(const WindowPosition& position, std::int64_t elements, at::ScalarType type,
                                        const kernels::Reduction& what) const;

  core::Range slice_of(int rank, std::int64_t elements, std::size_t element_bytes) const;

  mpi::Communicator node_;
  std::shared_ptr<NodePeerGroups> peer_groups_;
  NodeBoard board_;
  NodeWindow window_;
  mpi::SharedMemory staging_;
  std::size_t half_bytes_;
  std::uint64_t turn_ = 0;
  kernels::Kernel kernel_;
  std::vector<int> ranks_;  ///< 0, 1, ... size() - 1
};

}  // namespace hortator::comm

#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/shm/board.hpp"
#include "comm/shm/kernels/reduce_kernels.hpp"
#include "comm/shm/peer_groups.hpp"
#include "comm/shm/window.hpp"
#include "core/range.hpp"
#include "mpi/shared_memory.hpp"

namespace hortator::comm {

/// The ranks of one node and what they share. Everything below is @collective over them; reductions over all ranks of
/// `comm`.
class NodeTeam {
 public:
  /// `staging_bytes` of each rank hold tensors that lie outside the window. `comm` is kept by reference.
  NodeTeam(const mpi::Communicator& comm, std::size_t staging_bytes);

  bool has_one_node() const { return !peer_groups_; }  ///< there is one node only
  /// Can what goes to other nodes move on while nobody waits for it: reductions, and what has a part for each rank?
  bool can_move_in_background() const { return peer_groups_ && peer_groups_->can_move_in_background(); }
  bool can_move_parts_in_background() const { return can_move_in_background() && peer_groups_->include_all_ranks(); }
  int rank() const { return node_.rank(); }
  int size() const { return node_.size(); }
  NodeBoard& board() { return board_; }
  NodeWindow& window() { return window_; }

  /// The ranks' tensors become their reduction, in place. Each rank reduces its own slice, from the memory of all to
  /// the memory of all; where there are other nodes, over them in between.
  void reduce_in_window(const WindowPosition& position, std::int64_t elements, at::ScalarType type,
                        const kernels::Reduction& what);
  /// The same for tensors in the ranks' own memory, block by block.
  void reduce_staged(std::byte* data, std::int64_t elements, at::ScalarType type, const kernels::Reduction& what);
  /// `output` becomes this rank's part of the reduction; `place` has the parts of all ranks one after the other.
  void reduce_part_in_window(const WindowPosition& position, std::byte* output, std::int64_t elements,
                             const kernels::Reduction& what);
  void reduce_part_staged(const std::byte* input, std::byte* output, std::int64_t elements,
                          const kernels::Reduction& what);
  /// The same over several nodes, of what lies in the window, by calls that do not wait. Null: this rank has no share.
  PendingTransferPtr start_reduce(const WindowPosition& position, std::int64_t elements, at::ScalarType type,
                                  const kernels::Reduction& what);
  PendingTransferPtr start_reduce_part(const WindowPosition& position, const at::Tensor& output,
                                       const kernels::Reduction& what);

  /// This rank's `bytes` go to their place in the outputs of all ranks; nothing moves where they are there already.
  void gather_in_window(const WindowPosition& output, const std::byte* input, std::size_t bytes);
  void gather_staged(std::byte* output, const std::byte* input, std::size_t bytes);
  PendingTransferPtr start_gather(const WindowPosition& output, const at::Tensor& input);

  /// `place` is where all ranks have the data.
  void broadcast_in_window(const WindowPosition& position, std::size_t bytes, int root);
  void broadcast_staged(std::byte* data, std::size_t bytes, int root);

 private:
  /// Staging memory has two halves, used in turn: a rank that is a block ahead does not overwrite what others read.
  std::byte* stage_of(int rank) const { return staging_.part(rank) + (turn_ % 2) * half_bytes_; }
  void reduce(const kernels::Reduction& what, const std::vector<const std::byte*>& inputs,
              const std::vector<std::byte*>& outputs, std::int64_t elements) const;
  /// The same place as all ranks have it.
  std::vector<const std::byte*> inputs_at(const WindowPosition& position, std::size_t offset) const;
  std::vector<std::byte*> outputs_at(const WindowPosition& position, std::size_t offset) const;
  void reduce_block_everywhere(std::byte* block, std::int64_t elements, const kernels::Reduction& what) const;
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
  std::vector<int> everybody_;  ///< 0, 1, ... size() - 1
};

}  // namespace hortator::comm

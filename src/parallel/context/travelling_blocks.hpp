#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "comm/communicator.hpp"
#include "parallel/context/sequence_layout.hpp"

namespace hortator::parallel {

/// Memory for some tensors of any one rank, whose dimension -2 runs along the rank's tokens. They are contiguous
/// together, so that they travel as one message.
class BlockMemory {
 public:
  /// Allocates memory for the rank with the most tokens. `sizes` are those of the tensors on any rank.
  BlockMemory(std::vector<std::vector<std::int64_t>> sizes, const at::TensorOptions& options,
              const SequenceLayout& layout);

  /// The tensors as those of `rank`, and all their elements. They share the memory.
  std::vector<at::Tensor> tensors_of(int rank) const;
  at::Tensor elements_of(int rank) const;

 private:
  std::vector<std::int64_t> sizes_of(std::size_t tensor, int rank) const;
  std::int64_t elements(int rank) const;

  std::vector<std::vector<std::int64_t>> sizes_;
  SequenceLayout layout_;
  at::Tensor memory_;
};

/// Blocks that travel in a ring: in each step, from each rank to the next. There is memory for two on each rank.
class TravellingBlocks {
 public:
  /// This rank begins with its own block, in memory that is not initialised. Does not communicate; fails if memory runs
  /// out. `over` must outlive this.
  TravellingBlocks(const std::vector<std::vector<std::int64_t>>& sizes, const at::TensorOptions& options,
                   const SequenceLayout& layout, comm::Communicator& over);

  /// The rank whose block this one has.
  int source() const { return source_; }
  /// The tensors of that block.
  std::vector<at::Tensor> tensors() const { return here_.tensors_of(source_); }
  /// All elements of these tensors.
  at::Tensor elements() const { return here_.elements_of(source_); }

  /// Begins to send the block to the next rank, and to receive that of the one before. Do not write to the block
  /// until finish(). @collective
  void start();
  /// Waits until the block of the rank before has arrived. @collective
  void finish();

 private:
  comm::Communicator& over_;
  BlockMemory here_, arriving_;
  int source_;
  comm::Work work_;
};

}  // namespace hortator::parallel

#pragma once

#include <cstddef>

#include "machine/memory/recycled_blocks.hpp"

namespace hortator::machine {

/// While one of these lives, LibTorch's CPU tensors of 1 MiB and more get blocks that are used again for the next of
/// the same size: gradients come and go with each step, and fresh memory costs ten times what recycled does. What is
/// not in use is kept up to a cap. When the last one dies all of that goes back to the system, and new memory comes
/// from LibTorch's former allocator again; what is still alive stays good.
class RecyclingAllocator {
 public:
  /// Of several that live the largest cap counts.
  explicit RecyclingAllocator(std::size_t cap_bytes);
  ~RecyclingAllocator();
  RecyclingAllocator(const RecyclingAllocator&) = delete;
  RecyclingAllocator& operator=(const RecyclingAllocator&) = delete;

  /// Of these blocks, in all of the process.
  static RecycledBlocks::Counters counters();
  static void reset_peak();
  /// Gives back to the system what is not in use.
  static void trim();

 private:
  std::size_t cap_bytes_;
};

}  // namespace hortator::machine

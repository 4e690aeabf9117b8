#pragma once

#include <cstddef>

#include "machine/memory/recycled_blocks.hpp"

namespace hortator::machine {

/// During its lifetime, LibTorch's CPU tensors of 1 MiB and more get recycled blocks of the same size: gradients are
/// allocated and freed in each step, and fresh memory costs ten times as much as recycled memory. Unused blocks are
/// kept up to a cap. When the last instance is destroyed, they return to the system and LibTorch's former allocator
/// provides new memory again; live tensors stay valid.
class RecyclingAllocator {
 public:
  /// With several instances, the largest cap counts.
  explicit RecyclingAllocator(std::size_t cap_bytes);
  ~RecyclingAllocator();
  RecyclingAllocator(const RecyclingAllocator&) = delete;
  RecyclingAllocator& operator=(const RecyclingAllocator&) = delete;

  /// Counts these blocks in the whole process.
  static RecycledBlocks::Counters counters();
  static void reset_peak();
  /// Returns unused blocks to the system.
  static void trim();

 private:
  std::size_t cap_bytes_;
};

}  // namespace hortator::machine

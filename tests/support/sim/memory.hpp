#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "machine/races/race_detector.hpp"

namespace hortator::sim {

/// Memory of a device, or page-locked memory of the host.
struct Block {
  char* memory;
  std::size_t bytes;
  int device;    ///< -1: the host
  int stream;    ///< whose work may reuse it at once
  int pool = 0;  ///< of a recording; 0: of none
  bool in_use = true;
  std::uint64_t releases = 0;
  std::vector<int> other_streams = {};  ///< that use it as well
  machine::AccessHistory history = {};
};

/// Device addresses are host addresses with this bit, which no address of a process has.
constexpr std::uintptr_t far_bit = std::uintptr_t{1} << 47;

inline char* near(void* address) {
  return reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(address) & ~far_bit);  // NOLINT
}

/// Memory for the work of a stream. Throws c10::OutOfMemoryError, after the observers were called.
Block* allocate(int stream, std::size_t bytes);
void release(Block* block);
/// Delays the reuse of a block until the work that the stream has at its release is done.
void note_use(Block& block, int stream);
/// Returns the memory that no tensor has. Waits for the device.
void empty_cache(int device);

/// The block with this address of the host; null: none.
Block* block_at(const void* address);
void add_block(Block& block);
void remove_block(const Block& block);

/// Gives the blocks of a recording that is destroyed back to the device.
void dissolve_pool(int pool);

void observe_out_of_memory(void (*observer)(int device, std::size_t asked));

struct MemoryUse {
  std::int64_t allocated = 0;
  std::int64_t peak = 0;
  std::int64_t reserved = 0;
  std::int64_t out_of_memory = 0;
  std::size_t limit = 0;
};
MemoryUse memory_use(int device);
void reset_memory_peak(int device);

}  // namespace hortator::sim

#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace hortator::machine {

/// Blocks of memory from the system, kept for the next request of the same size. Thread-safe.
class RecycledBlocks {
 public:
  struct Block {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };
  struct Counters {
    std::size_t used_bytes = 0;
    std::size_t peak_used_bytes = 0;
    std::size_t kept_bytes = 0;
  };

  /// Takes a block of whole pages; data is null when there is no memory.
  Block take(std::size_t bytes);
  /// The block that was taken at this address; nothing if none was.
  std::optional<Block> taken_at(const void* data) const;
  void put_back(const Block& block) noexcept;
  /// Limits the bytes of unused blocks; beyond it, the oldest return to the system.
  void set_cap(std::size_t bytes) noexcept;

  Counters counters() const;
  void reset_peak();

 private:
  void shrink() noexcept;

  mutable std::mutex mutex_;
  std::unordered_map<const void*, std::size_t> taken_;  ///< bytes by address
  std::deque<Block> kept_;                              ///< the oldest first
  std::size_t cap_ = 0;
  Counters counters_;
};

}  // namespace hortator::machine

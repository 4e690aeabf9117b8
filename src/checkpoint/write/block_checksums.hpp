#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "checkpoint/format.hpp"
#include "core/checksum/crc32c.hpp"

namespace hortator::checkpoint {

/// Computes the checksum of each block of the slices that it is fed. For a block that a slice covers only in part, it
/// is the checksum of that part.
class BlockChecksums {
 public:
  /// Begins a slice whose first byte has the offset `begin` in its tensor.
  void begin_slice(std::int64_t begin) {
    in_block_ = static_cast<std::size_t>(begin % block_bytes);
    opens_ = true;
  }

  void add(const std::byte* data, std::size_t bytes) {
    while (bytes > 0) {
      if (in_block_ == 0 || opens_) blocks_.push_back(0);
      opens_ = false;
      const auto count = std::min(bytes, static_cast<std::size_t>(block_bytes) - in_block_);
      blocks_.back() = core::crc32c(data, count, blocks_.back());
      in_block_ = (in_block_ + count) % static_cast<std::size_t>(block_bytes);
      data += count;
      bytes -= count;
    }
  }

  std::vector<std::uint32_t> take() { return std::move(blocks_); }

 private:
  std::vector<std::uint32_t> blocks_;
  std::size_t in_block_ = 0;
  bool opens_ = false;  ///< whether no byte of the slice has been added yet
};

}  // namespace hortator::checkpoint

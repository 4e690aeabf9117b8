#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "checkpoint/format.hpp"
#include "core/checksum/crc32c.hpp"

namespace hortator::checkpoint {

/// Takes the checksums of the blocks of slabs that go by, and of parts of blocks where a slab begins or ends within.
class BlockChecksums {
 public:
  /// The slab's first byte is number `begin` of its tensor.
  void begin_slab(std::int64_t begin) {
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
  bool opens_ = false;  ///< nothing of the slab has come yet
};

}  // namespace hortator::checkpoint

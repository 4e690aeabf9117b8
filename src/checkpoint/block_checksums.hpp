#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/crc32c.hpp"
#include "checkpoint/format.hpp"

namespace hortator::checkpoint {

/// Takes the checksums of the blocks of slabs that go by. A slab begins with a block.
class BlockChecksums {
 public:
  void begin_slab() { in_block_ = 0; }

  void add(const std::byte* data, std::size_t bytes) {
    while (bytes > 0) {
      if (in_block_ == 0) blocks_.push_back(0);
      const auto count = std::min(bytes, static_cast<std::size_t>(block_bytes) - in_block_);
      blocks_.back() = base::crc32c(data, count, blocks_.back());
      in_block_ = (in_block_ + count) % static_cast<std::size_t>(block_bytes);
      data += count;
      bytes -= count;
    }
  }

  std::vector<std::uint32_t> take() { return std::move(blocks_); }

 private:
  std::vector<std::uint32_t> blocks_;
  std::size_t in_block_ = 0;
};

}  // namespace hortator::checkpoint

#include "machine/memory/recycled_blocks.hpp"

#include <algorithm>
#include <iterator>

#include "machine/memory/system_memory.hpp"

namespace hortator::machine {

RecycledBlocks::Block RecycledBlocks::take(std::size_t bytes) {
  Block block{.bytes = whole_pages(bytes)};
  const std::lock_guard lock(mutex_);
  // The newest block is the most likely to be in the cache.
  const auto found =
      std::find_if(kept_.rbegin(), kept_.rend(), [&](const Block& kept) { return kept.bytes == block.bytes; });
  if (found != kept_.rend()) {
    block = *found;
    kept_.erase(std::next(found).base());
    counters_.kept_bytes -= block.bytes;
  } else {
    block.data = map_memory(block.bytes);
    if (block.data == nullptr) return {};
  }
  taken_.emplace(block.data, block.bytes);
  counters_.used_bytes += block.bytes;
  counters_.peak_used_bytes = std::max(counters_.peak_used_bytes, counters_.used_bytes);
  return block;
}

std::optional<RecycledBlocks::Block> RecycledBlocks::taken_at(const void* data) const {
  const std::lock_guard lock(mutex_);
  const auto found = taken_.find(data);
  if (found == taken_.end()) return {};
  return Block{.data = static_cast<std::byte*>(const_cast<void*>(data)), .bytes = found->second};
}

void RecycledBlocks::put_back(const Block& block) noexcept {
  const std::lock_guard lock(mutex_);
  taken_.erase(block.data);
  counters_.used_bytes -= block.bytes;
  kept_.push_back(block);
  counters_.kept_bytes += block.bytes;
  shrink();
}

void RecycledBlocks::set_cap(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  cap_ = bytes;
  shrink();
}

void RecycledBlocks::shrink() noexcept {
  while (counters_.kept_bytes > cap_) {
    const auto oldest = kept_.front();
    kept_.pop_front();
    counters_.kept_bytes -= oldest.bytes;
    unmap_memory(oldest.data, oldest.bytes);
  }
}

RecycledBlocks::Counters RecycledBlocks::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void RecycledBlocks::reset_peak() {
  const std::lock_guard lock(mutex_);
  counters_.peak_used_bytes = counters_.used_bytes;
}

}  // namespace hortator::machine

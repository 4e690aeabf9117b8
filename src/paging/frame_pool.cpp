#include "paging/frame_pool.hpp"

#include <algorithm>
#include <atomic>
#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "interception/storage_memory.hpp"
#include "machine/memory/system_memory.hpp"

namespace hortator::paging {
namespace {

std::byte* checked(std::byte* memory, std::size_t bytes) {
  if (memory != nullptr) return memory;
  throw Error({.what = text::concat("No memory for a page of ", units::bytes(bytes)),
               .why = "the system is out of memory",
               .hint = "set a smaller resident_bytes or page_bytes"});
}

std::atomic<std::uint64_t> all_on_devices = 0;

std::size_t difference(std::size_t a, std::size_t b) { return a > b ? a - b : b - a; }

}  // namespace

Frame::~Frame() {
  if (data_ != nullptr) pool_->put_back({.data = data_, .bytes = bytes_, .owner = std::move(owner_)});
}

Frame::Frame(Frame&& other) noexcept
    : pool_(other.pool_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      owner_(std::move(other.owner_)) {}

Frame& Frame::operator=(Frame&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(owner_, other.owner_);
  return *this;
}

FramePool::~FramePool() { trim(0); }

void FramePool::lend(const std::vector<std::span<std::byte>>& frames) {
  const std::lock_guard lock(mutex_);
  lent_.add(frames);
}

bool FramePool::fits(std::size_t bytes, std::size_t budget) const {
  const std::lock_guard lock(mutex_);
  if (used_ + bytes > budget) return false;
  return lent_.empty() || lent_.has_room(bytes) || lent_.bytes() + used_ - used_of_lent_ + bytes <= budget;
}

Frame FramePool::take(std::size_t bytes) {
  const auto needed = machine::whole_pages(bytes);
  const std::lock_guard lock(mutex_);
  if (!device_.is_cpu()) return take_on_device(needed);
  if (auto* lent = lent_.take(needed)) {
    used_ += needed;
    used_of_lent_ += needed;
    return {this, lent, needed};
  }
  const auto fits_best = std::ranges::min_element(free_, [needed](const FrameMemory& a, const FrameMemory& b) {
    return difference(a.bytes, needed) < difference(b.bytes, needed);
  });
  std::byte* data = nullptr;
  if (fits_best == free_.end()) {
    data = checked(machine::map_memory(needed), needed);
  } else {
    data = fits_best->data;
    if (fits_best->bytes != needed) data = checked(machine::resize_memory(data, fits_best->bytes, needed), needed);
    free_.erase(fits_best);
  }
  used_ += needed;
  return {this, data, needed};
}

// Takes the smallest free frame that is large enough, unless it is much too large. Otherwise frees all free frames
// before it allocates a new one: the device may not have memory for both.
Frame FramePool::take_on_device(std::size_t bytes) {
  auto chosen = free_.end();
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    if (block->bytes < bytes || block->bytes > 2 * bytes) continue;
    if (chosen == free_.end() || block->bytes < chosen->bytes) chosen = block;
  }
  FrameMemory block{};
  if (chosen != free_.end()) {
    block = std::move(*chosen);
    free_.erase(chosen);
  } else {
    for (const auto& one : free_) free_memory(one);
    free_.clear();
    auto memory = interception::new_memory(bytes, device_);
    all_on_devices += bytes;
    block.data = static_cast<std::byte*>(memory.get());
    block.bytes = bytes;
    block.owner = std::move(memory);
  }
  used_ += block.bytes;
  return {this, block.data, block.bytes, std::move(block.owner)};
}

void FramePool::put_back(FrameMemory block) noexcept {
  const std::lock_guard lock(mutex_);
  used_ -= block.bytes;
  if (lent_.put_back(block.data)) {
    used_of_lent_ -= block.bytes;
  } else if (!lent_.empty()) {
    free_memory(block);
  } else {
    free_.push_back(std::move(block));
  }
}

void FramePool::trim(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  auto kept = std::size_t{0};
  for (const auto& block : free_) kept += block.bytes;
  while (!free_.empty() && kept > bytes) {
    kept -= free_.back().bytes;
    free_memory(free_.back());
    free_.pop_back();
  }
}

void FramePool::free_memory(const FrameMemory& block) const {
  if (device_.is_cpu()) {
    machine::unmap_memory(block.data, block.bytes);
  } else {
    all_on_devices -= block.bytes;  // its owner is destroyed with it
  }
}

std::uint64_t FramePool::bytes_on_devices() { return all_on_devices; }

std::size_t FramePool::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

std::size_t FramePool::free_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& block : free_) bytes += block.bytes;
  return bytes;
}

}  // namespace hortator::paging

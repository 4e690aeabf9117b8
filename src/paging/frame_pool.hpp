#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "paging/lent_frames.hpp"

namespace hortator::paging {

class FramePool;

/// Memory for a page. Returns to its pool when destroyed, which must be before the pool is destroyed. Move-only.
class Frame {
 public:
  Frame() = default;
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  Frame(Frame&& other) noexcept;
  Frame& operator=(Frame&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }  ///< whole pages of the system; on a device possibly more than requested
  explicit operator bool() const { return data_ != nullptr; }

 private:
  friend class FramePool;
  Frame(FramePool* pool, std::byte* data, std::size_t bytes, at::DataPtr owner = {})
      : pool_(pool), data_(data), bytes_(bytes), owner_(std::move(owner)) {}

  FramePool* pool_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  at::DataPtr owner_ = {};  ///< of memory on a device
};

/// Frames allocated by the system and reused as long as the pool lives: touching fresh memory costs ten times as much
/// as filling it. A free frame of another size is resized, and keeps the memory that it has.
///
/// On a device frames are LibTorch's memory. Work queued on the current stream may still read a frame that was
/// returned: code that fills it on another stream must make that stream wait for the current one.
class FramePool {
 public:
  explicit FramePool(c10::Device device = c10::kCPU) : device_(device) {}
  ~FramePool();
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  /// Uses this memory first (lent_frames.hpp), and returns other frames to the system as soon as they are free. It must
  /// outlive the pool. Only on CPUs.
  void lend(const std::vector<std::span<std::byte>>& frames);
  /// Whether take() of a frame of this size leaves what is lent, and all frames beside it, within `budget`.
  bool fits(std::size_t bytes, std::size_t budget) const;

  Frame take(std::size_t bytes);
  /// Returns free frames to the system until at most `bytes` remain.
  void trim(std::size_t bytes);

  /// Bytes on devices in all pools of the process, used or free.
  static std::uint64_t bytes_on_devices();

  std::size_t used_bytes() const;
  std::size_t free_bytes() const;

 private:
  friend class Frame;
  struct FrameMemory {
    std::byte* data;
    std::size_t bytes;
    at::DataPtr owner = {};
  };
  Frame take_on_device(std::size_t bytes);
  void put_back(FrameMemory block) noexcept;
  void free_memory(const FrameMemory& block) const;

  c10::Device device_;
  mutable std::mutex mutex_;
  LentFrames lent_;
  std::vector<FrameMemory> free_;
  std::size_t used_ = 0;
  std::size_t used_of_lent_ = 0;
};

}  // namespace hortator::paging

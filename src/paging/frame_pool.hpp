#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace hortator::paging {

class FramePool;

/// Memory for a page. Goes back to its pool when it dies, which it must before the pool does. Move-only.
class Frame {
 public:
  Frame() = default;
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  Frame(Frame&& other) noexcept;
  Frame& operator=(Frame&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }  ///< whole pages of the system; on a device perhaps more than asked for
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

/// Frames straight from the system, used again as long as the pool lives: touching fresh memory costs ten times what
/// filling it does. A free frame of another size is made to fit, and keeps what it has of memory.
///
/// On a device frames are LibTorch's memory. One that went back may still be read by what the current stream was given
/// until then: whoever fills it anew on another stream lets that wait for the current one.
class FramePool {
 public:
  explicit FramePool(c10::Device device = c10::kCPU) : device_(device) {}
  ~FramePool();
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  Frame take(std::size_t bytes);
  /// Free frames beyond `bytes` in all go back to the system.
  void trim(std::size_t bytes);

  /// Of all pools of the process, used or free.
  static std::uint64_t bytes_on_devices();

  std::size_t used_bytes() const;
  std::size_t free_bytes() const;

 private:
  friend class Frame;
  struct Block {
    std::byte* data;
    std::size_t bytes;
    at::DataPtr owner = {};
  };
  Frame take_on_device(std::size_t bytes);
  void put_back(Block block) noexcept;
  void give_up(const Block& block) const;

  c10::Device device_;
  mutable std::mutex mutex_;
  std::vector<Block> free_;
  std::size_t used_ = 0;
};

}  // namespace hortator::paging

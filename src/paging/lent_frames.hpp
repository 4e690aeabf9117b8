#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hortator::paging {

/// Memory that is divided into frames for pages. The largest pages need a whole frame. Small pages share frames:
/// each gets the smallest gap that holds it, so that they do not take the frames that large pages need. Depends only on
/// the order of calls, never on addresses: ranks that call it alike place pages alike.
class LentFrames {
 public:
  void add(const std::vector<std::span<std::byte>>& frames);

  bool has_room(std::size_t bytes) const { return smallest_gap(bytes).frame < frames_.size(); }
  /// Null if no gap is large enough.
  std::byte* take(std::size_t bytes);
  /// Returns whether `data` is memory that take() returned; it is free again.
  bool put_back(const std::byte* data) noexcept;

  bool empty() const { return frames_.empty(); }
  std::size_t bytes() const;  ///< of all frames

 private:
  struct UsedBytes {
    std::size_t begin = 0, end = 0;  ///< in the frame
  };
  struct SharedFrame {
    std::span<std::byte> memory;
    std::vector<UsedBytes> used = {};  ///< in their order in memory
  };
  struct Gap {
    std::size_t frame = 0;   ///< the number of frames if there is none
    std::size_t before = 0;  ///< the number of used ranges before it
    std::size_t begin = 0;
  };
  Gap smallest_gap(std::size_t bytes) const;

  std::vector<SharedFrame> frames_;
};

}  // namespace hortator::paging

#pragma once

#include <cstddef>
#include <cstdint>

namespace hortator::formats {

/// Loads parts of files into the page cache, from which they are copied later. Nothing is copied now, and nothing
/// counts as read. This only affects speed: where the system cannot, or the file has changed, nothing happens.
///
/// posix_fadvise(POSIX_FADV_WILLNEED) does not do: it stops at the read-ahead size of the device and fills the cache
/// with single pages, and copying from those takes many times as long as from the large folios of sequential reading.
class CacheFiller {
 public:
  CacheFiller() noexcept;
  ~CacheFiller();
  CacheFiller(const CacheFiller&) = delete;
  CacheFiller& operator=(const CacheFiller&) = delete;

  /// Returns, as a rule, when the bytes are in the cache.
  void bring(int descriptor, std::uint64_t offset, std::size_t bytes) noexcept;

 private:
  void give_up() noexcept;

  int pipe_out_ = -1;
  int pipe_in_ = -1;
  int null_device_ = -1;
};

}  // namespace hortator::formats

#pragma once

#include <cstddef>
#include <cstdint>

namespace hortator::formats {

/// Has the system read parts of files into its cache, from which they are copied later: nothing is copied now, and
/// nothing counts as read. It is for speed alone: where a system cannot, or a file is not what it was, nothing happens.
///
/// Not posix_fadvise(POSIX_FADV_WILLNEED): that stops at the read-ahead size of the device, and fills the cache with
/// single pages, from which copying takes many times as long as from the large pieces that reading in order makes.
class CacheFiller {
 public:
  CacheFiller() noexcept;
  ~CacheFiller();
  CacheFiller(const CacheFiller&) = delete;
  CacheFiller& operator=(const CacheFiller&) = delete;

  /// Returns when they are there, as a rule.
  void bring(int descriptor, std::uint64_t offset, std::size_t bytes) noexcept;

 private:
  void give_up() noexcept;

  int from_ = -1;
  int to_ = -1;
  int nowhere_ = -1;
};

}  // namespace hortator::formats

#pragma once

#include <cstddef>
#include <filesystem>

namespace hortator::formats {

/// Memory backed by an unnamed file: zero at first, released when the process ends in whatever way. When memory is
/// short, the system writes unused pages to the disk, and loads them when they are touched. No other process can change
/// or truncate the file, and its disk space is reserved at once, because a full disk or a truncated file would kill the
/// process (SIGBUS).
///
/// Copy-on-write file systems reserve no space for changes. btrfs can be asked to write in place and is; the others are
/// refused. The file system below an overlay (a container's own folders) cannot be detected.
class ScratchMemory {
 public:
  /// `bytes` must not be 0. Throws FileError, also if the disk has no space or cannot reserve it.
  ScratchMemory(const std::filesystem::path& folder, std::size_t bytes);
  ~ScratchMemory();
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace hortator::formats

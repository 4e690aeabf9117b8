#pragma once

#include <cstddef>
#include <filesystem>

namespace hortator::formats {

/// Memory that is a file without a name: zeros at first, gone with the process however that ends. The system writes
/// what is not in use to the disk when memory is short, and brings it back when it is touched. Nobody else can change
/// the file or cut it short, and its room on the disk is taken at once: a disk that were found full, or a file that had
/// become shorter, would end the process (SIGBUS).
///
/// File systems that write changes to new places keep no room for them. Where they can be told to write in place
/// (btrfs) they are; else it is an error. What lies below an overlay (a container's own folders) is not seen.
class ScratchMemory {
 public:
  /// `bytes` are more than none. Throws FileError, also where the disk has no room or cannot promise it.
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

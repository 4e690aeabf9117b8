#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace hortator::io {

/// A file as the system sees it: bytes at offsets. Every call is this rank's own business and either does all or
/// throws, so a failure here can be survived by all ranks together. Move-only.
class RawFile {
 public:
  static RawFile create(const std::filesystem::path& path);            ///< where there is none
  static RawFile open_for_writing(const std::filesystem::path& path);  ///< an existing file
  static RawFile open_for_reading(const std::filesystem::path& path);

  ~RawFile();
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;
  RawFile(RawFile&& other) noexcept;
  RawFile& operator=(RawFile&& other) noexcept;

  void write_at(std::int64_t offset, const void* data, std::size_t bytes) const;
  void read_at(std::int64_t offset, void* data, std::size_t bytes) const;
  std::uint64_t bytes() const;
  int descriptor() const { return descriptor_; }
  void resize(std::uint64_t bytes) const;
  /// Returns when what was written through this node is on the disk.
  void sync() const;
  /// Network file systems report late failures here.
  void close();

 private:
  RawFile(std::filesystem::path path, int descriptor);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Makes the names in a folder durable: what was created, renamed or removed there.
void sync_folder(const std::filesystem::path& folder);

}  // namespace hortator::io

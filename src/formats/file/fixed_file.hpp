#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "formats/file/raw_file.hpp"

namespace hortator::formats {

/// A file for reading that must not change while it is in use, because reads are planned by its size. Thread-safe.
///
/// It is read by pread and not through a memory map: when the file is truncated, a map kills the process and a call
/// reports it. Either way the bytes come from the same pages of the page cache.
class FixedFile {
 public:
  /// What changes when a file is written or replaced.
  struct FileVersion {
    std::uint64_t bytes = 0;
    std::int64_t changed_seconds = 0;
    std::int64_t changed_nanoseconds = 0;
    std::uint64_t inode = 0;
    friend bool operator==(const FileVersion&, const FileVersion&) = default;
  };

  explicit FixedFile(std::filesystem::path path);
  /// A file that was closed in between. Throws FileError if it is not the version `expected` any more.
  FixedFile(std::filesystem::path path, const FileVersion& expected);

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t bytes() const { return found_.bytes; }
  int descriptor() const { return file_.descriptor(); }
  const FileVersion& found() const { return found_; }  ///< when it was opened first

  /// Reads all bytes, or throws FileError, also if the file has become shorter.
  void read_at(std::uint64_t offset, void* data, std::size_t bytes) const;
  void expect_front_to_back() const noexcept { file_.expect_front_to_back(); }
  /// Call after reading: throws FileError if the file's size or modification time has changed.
  void require_unchanged() const;

 private:
  FileVersion version() const;

  std::filesystem::path path_;
  RawFile file_;
  FileVersion found_;
};

/// A private memory map of a file: pages are loaded when they are touched, and writing changes this process's copy,
/// never the file. Use it only for files that no process writes to: truncating the file while the map exists kills the
/// process (SIGBUS).
class FileMap {
 public:
  explicit FileMap(const FixedFile& file);
  ~FileMap();
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace hortator::formats

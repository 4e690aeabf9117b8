#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "formats/file/raw_file.hpp"

namespace hortator::formats {

/// A file for reading that must stay as it was found: what is read from it was planned by its size. Safe to use from
/// several threads.
///
/// It is read by calls and not through a map of memory: a map whose file was cut short kills the process, a call says
/// so. The bytes come from the same pages of the system's cache either way.
class FixedFile {
 public:
  explicit FixedFile(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t bytes() const { return found_.bytes; }
  int descriptor() const { return file_.descriptor(); }

  /// All of it or a FileError, also where the file has become shorter.
  void read_at(std::uint64_t offset, void* data, std::size_t bytes) const;
  void expect_front_to_back() const noexcept { file_.expect_front_to_back(); }
  /// To be called after reading: throws FileError when the file's size or the time of its last change is another.
  void require_unchanged() const;

 private:
  struct Facts {
    std::uint64_t bytes = 0;
    std::int64_t changed_seconds = 0;
    std::int64_t changed_nanoseconds = 0;
    friend bool operator==(const Facts&, const Facts&) = default;
  };
  Facts facts() const;

  std::filesystem::path path_;
  RawFile file_;
  Facts found_;
};

}  // namespace hortator::formats

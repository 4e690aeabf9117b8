#pragma once

#include <cstddef>

#include "formats/file/fixed_file.hpp"

namespace hortator::formats {

/// A file's bytes in memory, fetched when they are touched. Writing changes this process's copy, never the file.
/// Whoever cuts the file short while this lives ends the process (SIGBUS): for files that nobody writes to.
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

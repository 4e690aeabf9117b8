#pragma once

#include <cstddef>

#include "formats/file/fixed_file.hpp"

namespace hortator::formats {

/// A private memory map of a file: pages are loaded when they are touched, and writing changes this process's copy,
/// never the file. Use it only for files that nobody writes to: truncating the file while the map exists kills the
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

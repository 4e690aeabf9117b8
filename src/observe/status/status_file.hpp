#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace hortator::observe {

/// A rank's row in the file with the rows of all ranks. It is replaced in place, so that a running job creates no
/// files.
class StatusFile {
 public:
  StatusFile(std::filesystem::path file, int row) : path_(std::move(file)), row_(row) {}
  ~StatusFile();
  StatusFile(const StatusFile&) = delete;
  StatusFile& operator=(const StatusFile&) = delete;

  /// Writes the row; the first call opens the file and creates its folder if necessary. Returns false on failure.
  bool write(const std::string& row);

 private:
  std::filesystem::path path_;
  int row_;
  int descriptor_ = -1;
};

/// Appends a row to a file that several runs may write. Returns false on failure.
bool append_row(const std::filesystem::path& file, const std::string& row);

std::int64_t resident_bytes();  ///< of this process
double cpu_seconds();           ///< of all threads of this process

}  // namespace hortator::observe

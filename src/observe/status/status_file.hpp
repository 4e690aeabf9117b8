#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace hortator::observe {

/// A rank's row among those of all ranks, in one file: replaced in place, so that a running job makes no files.
class StatusFile {
 public:
  StatusFile(std::filesystem::path file, int row) : path_(std::move(file)), row_(row) {}
  ~StatusFile();
  StatusFile(const StatusFile&) = delete;
  StatusFile& operator=(const StatusFile&) = delete;

  /// Opens the file the first time; its folder is made if need be. False when that cannot be.
  bool write(const std::string& row);

 private:
  std::filesystem::path path_;
  int row_;
  int descriptor_ = -1;
};

/// Adds a row to a file that several runs may write. False when that cannot be.
bool append_row(const std::filesystem::path& file, const std::string& row);

std::int64_t resident_bytes();  ///< of this process
double cpu_seconds();           ///< that all its threads have used

}  // namespace hortator::observe

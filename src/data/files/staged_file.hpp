#pragma once

#include <cstdint>
#include <filesystem>

#include "core/environment/environment.hpp"

namespace hortator::data {

/// The folder for node-local files: SLURM_TMPDIR, TMPDIR, or /tmp.
std::filesystem::path node_folder(const core::Variables& variables);

/// The copy of a file on the node's own disk. Used by one rank of a node.
class StagedFile {
 public:
  /// Throws FileError unless `file` can be read.
  StagedFile(const std::filesystem::path& file, const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return path_; }
  bool is_current() const;  ///< whether there is a copy with the original's size and time
  /// Copies under a temporary name and renames, so that no partial file is visible. Throws FileError and leaves nothing
  /// if there is too little space or the original changes meanwhile.
  void copy() const;

 private:
  std::filesystem::path original_;
  std::filesystem::path path_;
  std::uintmax_t bytes_;
  std::filesystem::file_time_type time_;
};

}  // namespace hortator::data

#pragma once

#include <cstdint>
#include <filesystem>

#include "core/environment/environment.hpp"

namespace hortator::data {

/// Where a node has room of its own: SLURM_TMPDIR, TMPDIR, or /tmp.
std::filesystem::path node_folder(const core::Variables& variables);

/// A file's copy on the node's own disk. One rank of a node deals with it.
class StagedFile {
 public:
  /// Throws FileError unless `file` is one that can be read.
  StagedFile(const std::filesystem::path& file, const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return path_; }
  bool is_current() const;  ///< is there a copy, as long and as old as the original?
  /// Copies, aside and then by a rename: nobody sees half a file. Throws FileError, and leaves nothing, when there is
  /// too little room or the original changes meanwhile.
  void copy() const;

 private:
  std::filesystem::path original_;
  std::filesystem::path path_;
  std::uintmax_t bytes_;
  std::filesystem::file_time_type time_;
};

}  // namespace hortator::data

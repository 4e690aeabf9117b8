#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "tools/doctor/finding.hpp"

namespace hortator::tools::doctor {

/// The operations that a checkpoint needs in a folder. The text of each trial is the system's error, empty on success.
struct FolderFacts {
  std::string path = "";
  std::string file_system = "";  ///< "ext4", "lustre"
  std::uint64_t free_bytes = 0;
  std::string writing = "";
  std::string renaming = "";  ///< over an existing file
  std::string syncing = "";   ///< of files and of the folder itself
  std::string flock = "";     ///< locks of whole files
  std::string fcntl = "";     ///< locks of byte ranges
};

Findings judge(const FolderFacts& folder);

/// Tries the operations with a few small files and removes them.
FolderFacts inspect_folder(const std::filesystem::path& folder);

/// The type of the file system of `path`: that of the longest matching mount point in /proc/self/mountinfo.
std::string file_system_of(const std::filesystem::path& path, const std::string& mountinfo);

}  // namespace hortator::tools::doctor

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "tools/doctor/finding.hpp"

namespace hortator::tools::doctor {

/// What became of everything that a checkpoint asks of a folder; a trial's text is the system's complaint, empty where
/// it works.
struct Folder {
  std::string path = "";
  std::string file_system = "";  ///< "ext4", "lustre"
  std::uint64_t free_bytes = 0;
  std::string writing = "";
  std::string renaming = "";  ///< in place of a file that is there
  std::string syncing = "";   ///< of files and of the folder itself
  std::string flock = "";     ///< locks of whole files
  std::string fcntl = "";     ///< locks of parts of files
};

Findings judge(const Folder& folder);

/// Tries it out with a few small files, which are gone afterwards.
Folder look_at_folder(const std::filesystem::path& folder);

/// The kind of file system below the longest mount point that `path` begins with, by /proc/self/mountinfo.
std::string file_system_of(const std::filesystem::path& path, const std::string& mountinfo);

}  // namespace hortator::tools::doctor

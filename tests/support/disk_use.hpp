#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <map>

#include "mpi/collectives.hpp"

namespace hortator::test {

/// Returns the bytes on disk of the files in `folder` that this process has open, by inode. Includes deleted files.
inline std::map<std::uint64_t, std::uint64_t> open_files_in(const std::filesystem::path& folder) {
  std::map<std::uint64_t, std::uint64_t> files;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone);
    struct stat facts {};
    const bool is_there = !gone && target.string().starts_with(folder.string() + "/");
    if (is_there && ::stat(entry.path().c_str(), &facts) == 0)
      files[facts.st_ino] = static_cast<std::uint64_t>(facts.st_blocks) * 512;
  }
  return files;
}

struct DiskUse {
  std::uint64_t mine = 0;  ///< files that this rank has open
  std::uint64_t all = 0;   ///< files that any rank has open, each counted once
};

/// @collective
inline DiskUse disk_use(const mpi::Communicator& comm, const std::filesystem::path& folder) {
  struct File {
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
  };
  std::map<std::uint64_t, std::uint64_t> all;
  DiskUse use;
  const auto files = open_files_in(folder);
  for (const auto& [number, bytes] : files) use.mine += bytes;
  auto next = files.begin();
  for (int left = mpi::all_reduce(comm, static_cast<int>(files.size()), mpi::Op::max); left > 0; --left) {
    const auto mine = next != files.end() ? File{next->first, next->second} : File{};
    if (next != files.end()) ++next;
    for (const auto& file : mpi::all_gather(comm, mine)) all[file.number] = file.bytes;
  }
  for (const auto& [number, bytes] : all) use.all += bytes;
  return use;
}

}  // namespace hortator::test

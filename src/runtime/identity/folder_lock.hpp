#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

#include "runtime/identity/lock_holder.hpp"

namespace hortator::runtime {

/// The time for which a run waits for the one before it, which may be saving its last checkpoint.
constexpr std::chrono::seconds lock_patience{30};

constexpr auto folder_lock_file = "run.lock";

/// One absolute path for each folder, however it is written: with links, with a slash at the end, relative. Other runs
/// may make and remove the folder meanwhile. Throws std::filesystem::filesystem_error where a name cannot be read.
std::filesystem::path one_path_of(const std::filesystem::path& folder);

/// Whether a process of the same run may be let in without a lock: an Accelerator on other ranks may only read there.
enum class OtherRanks { may_hold, are_refused };

/// Keeps other runs out of a folder: a lock on the file run.lock in it, which the operating system releases when this
/// process ends, however it ends. Further locks of the same folder in this process share it; other processes of the
/// same run are let in without one, unless the holder is another part of it, or has other ranks and these are refused.
/// At the end the file is removed, and so are the folders that were made for it, if empty.
class FolderLock {
 public:
  /// Makes the folder if necessary. Throws UsageError, naming the holder, if another run still holds the folder after
  /// `patience`, and at once if the other run belongs to the same job. Without a lock, and after one warning, where the
  /// file system has none; silently where the folder cannot be written.
  FolderLock(const std::filesystem::path& folder, const LockHolder& self,
             std::chrono::milliseconds patience = lock_patience, OtherRanks others = OtherRanks::may_hold);

  bool is_held() const { return file_ != nullptr; }

 private:
  class LockedFile;
  std::shared_ptr<LockedFile> file_;
};

}  // namespace hortator::runtime

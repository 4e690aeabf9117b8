#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

namespace hortator::tools {

/// A keeper's folder for checkpoints in memory. Its lock is held until the keeper ends, however it ends.
class KeptFolder {
 public:
  /// Makes the folder, for this user only, or takes over that of a keeper that was killed. First removes the folders of
  /// this user beside it whose launchers and keepers were killed. Throws Error if the folder cannot be made, or belongs
  /// to another user, to a keeper that runs, or to none: it is removed in the end, with everything in it.
  explicit KeptFolder(std::filesystem::path folder);
  ~KeptFolder();
  KeptFolder(const KeptFolder&) = delete;
  KeptFolder& operator=(const KeptFolder&) = delete;

  /// Removes it, with everything in it. Retries for that long while ranks that are about to end still write there; then
  /// throws Error.
  void remove(std::chrono::milliseconds limit = std::chrono::seconds(8)) const;

 private:
  std::filesystem::path folder_;
  int lock_ = -1;
};

/// The folder's name begins so; the launch follows.
std::string kept_prefix();

/// The line that a keeper prints when it has its folder.
constexpr std::string_view keeper_is_ready = "ready";

}  // namespace hortator::tools

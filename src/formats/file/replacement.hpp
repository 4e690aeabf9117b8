#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::formats {

/// A unique name of one replacement; names sort by time: "20261121T075530.123456-9f3a51c2".
std::string replacement_id();
/// Whether `text` has the form of a replacement_id().
bool is_replacement_id(std::string_view text);

/// Which files of a folder are ours. A folder that holds others is never replaced or removed.
struct Ownership {
  std::function<bool(const std::string&)> is_ours;
  std::string seal;  ///< the file without which the others are useless: it is removed first
  /// Whether a folder holds something of ours that cannot be read: it is kept when it is replaced. Empty: none does.
  std::function<bool(const std::filesystem::path&)> is_damaged = {};
  std::string tree = {};  ///< a folder beside the seal whose whole content is ours; empty: none
};

/// Removes our files, then the folder if it is empty by then, so that no foreign file is lost. If the folder is a
/// symbolic link, only the link is removed, not its target. Returns false if the folder stays.
bool remove_folder(const std::filesystem::path& folder, const Ownership& ownership) noexcept;

/// Replaces a folder by another such that, whenever the process is killed, a complete one can be found: NAME.new-<id>
/// is filled, NAME becomes NAME.old-<id>, NAME.new-<id> becomes NAME, and NAME.old-<id> is removed, after it was
/// renamed to NAME.gone-<id>: no NAME.old-<id> is ever half removed. One that is damaged becomes NAME.damaged-<id> and
/// stays: it may be all that is left of something. One rank calls begin(), publish() and abandon(); all ranks write
/// into staged(). Only our own files are removed: in NAME.new-<id>; at the beginning in those of earlier ids and in
/// each NAME.gone-<id>; and, once the new NAME is durable, in every NAME.old-<any id>. One NAME belongs to one run at a
/// time, so what another has begun there was killed.
class Replacement {
 public:
  Replacement(std::filesystem::path target, std::string id, Ownership ownership);

  const std::filesystem::path& target() const { return target_; }
  std::filesystem::path staged() const;

  /// Creates the empty staged folder and the parents of NAME, and removes the staged folders of killed replacements.
  /// Throws FileError if NAME is anything but a folder of ours.
  void begin() const;
  /// Moves the written staged folder to NAME, durably. On failure it throws, and NAME is what it was.
  void publish() const;
  /// Removes the staged folder, if there is one.
  void abandon() const noexcept;

 private:
  friend struct ReplacementSteps;  // the test stops between the steps of publish()

  std::filesystem::path replaced() const;
  void move_old_aside() const;
  void move_new_in() const;
  void take_new_out() const noexcept;  ///< undoes move_new_in() if the new name could not be made durable
  void put_old_back() const noexcept;  ///< undoes move_old_aside()
  void remove_old() const noexcept;    ///< failures are only logged: the new folder is in place
  /// Renames NAME.old-<id> to NAME.<tag>-<id>, and returns that.
  std::filesystem::path put_away(const std::filesystem::path& old, const char* tag) const;

  std::filesystem::path beside(const std::string& tag) const;
  void require_replaceable() const;
  void remove_killed() const;

  std::filesystem::path target_;
  std::string id_;
  Ownership ownership_;
};

/// The folders that may be read as NAME, newest first: NAME, then those that killed replacements have moved aside.
std::vector<std::filesystem::path> generations(const std::filesystem::path& target);

}  // namespace hortator::formats

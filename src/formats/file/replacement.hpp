#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::formats {

/// A name for one replacement that no other has, and whose order is that of time: "20261121T075530.123456-9f3a51c2".
std::string replacement_id();
/// Does a word look like one?
bool is_replacement_id(std::string_view word);

/// Which files of a folder are ours. A folder that holds others is not ours to replace or to remove.
struct Ownership {
  std::function<bool(const std::string&)> is_ours;
  std::string seal;  ///< the file without which the others are worth nothing: it goes first
};

/// Removes our files, then the folder if it is empty by then: a stranger's file is never lost. Of a link only the link
/// goes, not what it leads to. False when the folder stays.
bool remove_folder(const std::filesystem::path& folder, const Ownership& ownership) noexcept;

/// Puts a folder in the place of another such that at every instant, whatever is killed, a complete one can be found:
/// NAME.new-<id> is filled aside; NAME becomes NAME.old-<id>; NAME.new-<id> becomes NAME; NAME.old-<id> goes.
/// One rank calls these; all ranks write into staged(). Nothing is ever removed but our files in NAME.new-<id>, at the
/// beginning in those of ids before this one, and, once the new NAME is durable, in every NAME.old-<any id>. One NAME
/// belongs to one run at a time: what another has begun there before was killed.
class Replacement {
 public:
  Replacement(std::filesystem::path target, std::string id, Ownership ownership);

  const std::filesystem::path& target() const { return target_; }
  std::filesystem::path staged() const;
  std::filesystem::path replaced() const;

  /// Makes the empty staged folder and the parents of NAME, and removes staged folders of those that were killed.
  /// Throws when NAME is something else than a folder of ours.
  void begin() const;
  /// The steps of publish(), in order.
  void move_old_aside() const;
  void move_new_in() const;
  void take_new_out() const noexcept;  ///< when its name could not be made durable
  void put_old_back() const noexcept;  ///< when the new one could not be moved in
  void remove_old() const noexcept;    ///< the new one is there, whatever becomes of these
  /// From the written staged folder to the new NAME, durably. On failure NAME is what it was.
  void publish() const;
  /// Removes the staged folder, as far as it is there.
  void abandon() const noexcept;

 private:
  std::filesystem::path beside(const std::string& word) const;
  void require_replaceable() const;
  void remove_killed() const;

  std::filesystem::path target_;
  std::string id_;
  Ownership ownership_;
};

/// What there may be to read when NAME is asked for, newest first: NAME, then what replacements that were killed had
/// moved aside.
std::vector<std::filesystem::path> generations(const std::filesystem::path& target);

}  // namespace hortator::formats

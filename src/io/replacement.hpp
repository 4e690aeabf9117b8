#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace hortator::io {

/// A name for one replacement that no other has, and whose order is that of time: "20261121T075530.123456-9f3a51c2".
std::string replacement_id();

/// Puts a folder in the place of another such that at every instant, whatever is killed, a complete one can be found:
/// NAME.new-<id> is filled aside; NAME becomes NAME.old-<id>; NAME.new-<id> becomes NAME; NAME.old-<id> goes.
/// One rank calls these; all ranks write into staged(). Nothing is ever removed but `files` in folders with this id.
class Replacement {
 public:
  /// `files` are the names that the folder will hold: an existing NAME with others in it is not ours to remove.
  Replacement(std::filesystem::path target, std::string id, std::vector<std::string> files);

  const std::filesystem::path& target() const { return target_; }
  std::filesystem::path staged() const;
  std::filesystem::path replaced() const;

  /// Makes the empty staged folder and the parents of NAME. Throws when NAME is something else than a folder of ours.
  void begin() const;
  /// The steps of publish(), in order.
  void move_old_aside() const;
  void move_new_in() const;
  void take_new_out() const noexcept;  ///< when its name could not be made durable
  void put_old_back() const noexcept;  ///< when the new one could not be moved in
  void remove_old() const;
  /// From the written staged folder to the new NAME, durably. On failure NAME is what it was.
  void publish() const;
  /// Removes the staged folder, as far as it is there.
  void abandon() const noexcept;

 private:
  std::filesystem::path beside(const std::string& word) const;
  void require_replaceable() const;

  std::filesystem::path target_;
  std::string id_;
  std::vector<std::string> files_;
};

/// The folder to read when NAME is asked for: NAME, or when a replacement was killed between its two renames, what it
/// had moved aside.
std::filesystem::path find_published(const std::filesystem::path& target);

}  // namespace hortator::io

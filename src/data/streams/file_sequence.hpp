#pragma once

#include <cstdint>
#include <filesystem>
#include <hortator/training/state_dict.hpp>
#include <memory>
#include <vector>

#include "data/streams/content_file.hpp"

namespace hortator::data {

/// The files of a stream. One is open at a time.
class FileSequence {
 public:
  /// Opens each file once. Throws UsageError if there are none, and FileError for one that cannot be read.
  explicit FileSequence(std::vector<std::filesystem::path> files);

  /// Keeps every `world`-th file, from the one with the number `rank` on.
  void select(int world, int rank);
  /// Goes to a position in the content of a file.
  void go_to(std::size_t file, std::uint64_t position);

  /// The file in turn, at the position that go_to() asked for; null after the last.
  ContentFile* current();
  /// Goes to the front of the next file.
  void advance() { go_to(at_ + 1, 0); }

  /// Saves the number of the file in turn, and `position` in it.
  void save(StateWriter& out, std::uint64_t position) const;
  /// Goes where save() was called. Throws UsageError if there are other files.
  void load(const StateReader& in);
  /// The position that go_to() asked for.
  std::uint64_t start() const { return start_; }

 private:
  std::vector<std::filesystem::path> all_, files_;
  std::size_t at_ = 0;
  std::uint64_t start_ = 0;
  std::unique_ptr<ContentFile> open_;
};

}  // namespace hortator::data

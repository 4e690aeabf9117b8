#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>

#include "formats/file/raw_file.hpp"

namespace hortator::step {

/// An unnamed file of blocks that are written once and read until they are released. Space of released blocks is used
/// again by blocks of the same size: the tensors of a step have the sizes of the step before.
class SpillFile {
 public:
  explicit SpillFile(const std::filesystem::path& folder);

  /// Returns the position of the new block.
  std::int64_t write(const void* data, std::size_t bytes);
  void read(std::int64_t position, void* to, std::size_t bytes) const { file_.read_at(position, to, bytes); }
  void release(std::int64_t position, std::size_t bytes) noexcept;
  std::int64_t bytes() const;  ///< of the file

 private:
  std::int64_t reserve(std::size_t bytes);

  formats::RawFile file_;
  mutable std::mutex mutex_;
  std::multimap<std::size_t, std::int64_t> free_;  ///< positions by size
  std::int64_t end_ = 0;
};

}  // namespace hortator::step

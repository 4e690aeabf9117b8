#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <vector>

#include "formats/file/fixed_file.hpp"

namespace hortator::formats {

/// Files for reading that must not change while they are in use. Only those that were read last are open, so that their
/// number is not bounded by the process's limit of descriptors. Thread-safe, except add().
class FilePool {
 public:
  /// At most `max_open` files stay open without a holder.
  explicit FilePool(std::size_t max_open = 64) : max_open_(max_open) {}

  /// Opens a file and returns its number: 0, 1, ...
  std::size_t add(const std::filesystem::path& path);
  std::size_t size() const { return known_.size(); }
  const std::filesystem::path& path(std::size_t number) const { return known_[number].path; }
  /// The file, which stays open as long as the result is held. Throws FileError if it has changed since it was added.
  std::shared_ptr<const FixedFile> get(std::size_t number) const;
  /// Throws FileError if a file has changed since it was added.
  void require_unchanged() const;

 private:
  struct KnownFile {
    std::filesystem::path path = {};
    FixedFile::FileVersion version = {};
    std::shared_ptr<const FixedFile> file = {};  ///< null: closed
  };
  std::shared_ptr<const FixedFile> find_open(std::size_t number) const;
  void keep(std::size_t number, std::shared_ptr<const FixedFile> file) const;

  std::size_t max_open_;
  mutable std::mutex mutex_ = {};
  mutable std::vector<KnownFile> known_ = {};
  mutable std::vector<std::size_t> open_ = {};  ///< the one that was used last at the end
};

}  // namespace hortator::formats

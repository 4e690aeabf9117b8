#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace hortator::formats {

/// A file descriptor with reads and writes at offsets. Every call is local to this rank and either completes or throws,
/// so that all ranks can agree on a failure. Move-only.
class RawFile {
 public:
  /// Other nodes may see a new name only after a while: a missing file, or the missing folder of a new one, is
  /// retried for `patience`.
  static RawFile create(const std::filesystem::path& path,
                        std::chrono::milliseconds patience = {});  ///< must not exist yet
  static RawFile open_for_writing(const std::filesystem::path& path, std::chrono::milliseconds patience = {});
  static RawFile open_for_reading(const std::filesystem::path& path, std::chrono::milliseconds patience = {});
  /// For reading and writing, without a name: the system removes it when this process ends, in whatever way.
  static RawFile create_unnamed(const std::filesystem::path& folder);
  /// For reading and writing, under a unique name: other processes open it before its creator removes the name.
  static RawFile create_to_pass_on(const std::filesystem::path& folder);
  static RawFile open_passed_on(const std::filesystem::path& path);

  ~RawFile();
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;
  RawFile(RawFile&& other) noexcept;
  RawFile& operator=(RawFile&& other) noexcept;

  void write_at(std::int64_t offset, const void* data, std::size_t bytes) const;
  void read_at(std::int64_t offset, void* data, std::size_t bytes) const;
  std::uint64_t bytes() const;
  int descriptor() const { return descriptor_; }
  const std::filesystem::path& path() const { return path_; }
  void resize(std::uint64_t bytes) const;
  /// Reserves disk space for `bytes` bytes, if the file system can; else only sets the size.
  void reserve(std::uint64_t bytes) const;
  /// Reserves disk space for a new file in any case: writes zeros if the file system cannot reserve. The file has
  /// `bytes` bytes then.
  void occupy(std::uint64_t bytes) const;
  /// Asks the system to start writing to the disk. Returns at once and never fails.
  void start_writing(std::int64_t offset, std::size_t bytes) const noexcept;
  /// Advises the system that the file is read sequentially, perhaps by all ranks of a node at once, so that it reads
  /// ahead as far as it can.
  void expect_front_to_back() const noexcept;
  /// Asks the system to drop the file's clean pages from the page cache.
  void forget_cached() const noexcept;
  /// Returns when everything written through this node is on the disk.
  void sync() const;
  /// Call after writing: network file systems report late failures here.
  void close();

 private:
  RawFile(std::filesystem::path path, int descriptor);
  bool allocate(std::uint64_t bytes) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// How long another node may take to see a new file: HORTATOR_FILE_PATIENCE, otherwise 10 s. UsageError for a value
/// that is not a time.
std::chrono::milliseconds visible_within();

/// Returns the contents of a file. Throws FileError if it has more than `max_bytes` bytes.
std::string read_text(const std::filesystem::path& path, std::uint64_t max_bytes);

/// Creates a folder and its parents; does nothing if it exists.
void make_folder(const std::filesystem::path& folder);
/// The same, so that the folders survive a power failure.
void make_folder_durably(const std::filesystem::path& folder);

/// Replaces what is named `to`, if anything.
void rename(const std::filesystem::path& from, const std::filesystem::path& to);

/// Makes the names in a folder durable: what was created, renamed or removed there survives a power failure.
void sync_folder(const std::filesystem::path& folder);

}  // namespace hortator::formats

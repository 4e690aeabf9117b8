#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace hortator::formats {

/// A file as the system sees it: bytes at offsets. Every call is this rank's own business and either does all or
/// throws, so a failure here can be survived by all ranks together. Move-only.
class RawFile {
 public:
  /// Other nodes see a new name only after a while: files, and the folders of new ones, are looked for as long as
  /// `patience`.
  static RawFile create(const std::filesystem::path& path, std::chrono::milliseconds patience = {});  ///< a new one
  static RawFile open_for_writing(const std::filesystem::path& path, std::chrono::milliseconds patience = {});
  static RawFile open_for_reading(const std::filesystem::path& path, std::chrono::milliseconds patience = {});
  /// For reading and writing, without a name: it is gone when this process is, however that ends.
  static RawFile create_unnamed(const std::filesystem::path& folder);
  /// For reading and writing, with a name that nobody else has: others open it before its maker removes that.
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
  /// Sees to it that the disk has room for so many bytes, as far as its file system can promise that.
  void reserve(std::uint64_t bytes) const;
  /// The same of a new file for certain: where nothing is promised, zeros are written. It has so many bytes then.
  void occupy(std::uint64_t bytes) const;
  /// Asks the system to begin with writing to the disk; returns at once, and never fails.
  void start_writing(std::int64_t offset, std::size_t bytes) const noexcept;
  /// Tells the system that the file is about to be read from front to back, perhaps by all ranks of a node at once: it
  /// reads ahead in the largest pieces that it has.
  void expect_front_to_back() const noexcept;
  /// Asks the system to forget what it holds of the file in memory, as far as that is on the disk.
  void forget_cached() const noexcept;
  /// Returns when what was written through this node is on the disk.
  void sync() const;
  /// Network file systems report late failures here.
  void close();

 private:
  RawFile(std::filesystem::path path, int descriptor);
  bool is_promised(std::uint64_t bytes) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// How long another node may take to see a file that is there.
constexpr std::chrono::seconds visible_within{10};

/// The whole of a file that has at most `most` bytes.
std::string read_text(const std::filesystem::path& path, std::uint64_t most);

/// With all those above it; one that is there already is as good.
void make_folder(const std::filesystem::path& folder);
/// And so that a failure of power leaves them there.
void make_folder_durably(const std::filesystem::path& folder);

/// In place of what may have that name.
void rename(const std::filesystem::path& from, const std::filesystem::path& to);

/// Makes the names in a folder durable: what was created, renamed or removed there.
void sync_folder(const std::filesystem::path& folder);

}  // namespace hortator::formats

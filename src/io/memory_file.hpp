#pragma once

#include <hdf5.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>  // drivers are declared apart since then
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>

#include "io/hdf5_handle.hpp"

namespace hortator::io {

/// Bytes at offsets, in memory, for HDF5 to write into as into a file. What is not written takes no memory, however
/// long the file is.
///
/// HDF5 makes our files here and not on the disk because it does not survive a full one: the file that it fails to
/// close stays open and crashes the process at its end. What it made is then copied by calls whose errors are ours to
/// handle.
class MemoryFile {
 public:
  MemoryFile();

  /// Makes HDF5 use this in place of a file, for what is opened with `access`; that must be closed before this goes.
  void use_in(const PropertyList& access);

  std::uint64_t bytes() const { return bytes_; }
  void write_at(std::uint64_t offset, const void* data, std::size_t bytes);
  void read_at(std::uint64_t offset, void* data, std::size_t bytes) const;  ///< zero where nothing was written
  void resize(std::uint64_t bytes) { bytes_ = bytes; }

  /// Makes the new file `path` with the same length, bytes and holes.
  void copy_to(const std::filesystem::path& path) const;

 private:
  static constexpr std::uint64_t page_bytes = std::uint64_t{1} << 14;
  using Page = std::array<std::byte, page_bytes>;

  std::map<std::uint64_t, Page> pages_;  // by offset
  std::uint64_t bytes_ = 0;
  Handle<H5FDunregister> driver_;
};

}  // namespace hortator::io

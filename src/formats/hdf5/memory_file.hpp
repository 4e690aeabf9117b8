#pragma once

#include <hdf5.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>  // drivers are declared apart since then
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "formats/file/raw_file.hpp"
#include "formats/hdf5/handle.hpp"

namespace hortator::formats {

/// How a file is parted, so that each tensor's place is known before HDF5 has made anything: structure in the first
/// bytes, then the tensors' bytes up to `end`, each placed by place_dataset() in the order in which they are created.
/// Structure that finds no room in front goes behind.
struct Parting {
  std::int64_t data_begin = std::int64_t{1} << 16;
  std::int64_t end = data_begin;
};

/// Where a dataset begins that follows what ends at `after`: large ones on a page, so that slabs of two ranks share
/// none.
constexpr std::int64_t place_dataset(std::int64_t after, std::int64_t bytes) {
  const std::int64_t grain = bytes >= (std::int64_t{1} << 20) ? 4096 : 8;
  return (after + grain - 1) / grain * grain;
}

/// Bytes at offsets, in memory, for HDF5 to write into as into a file. What is not written takes no memory, however
/// long the file is.
///
/// HDF5 makes our files here and not on the disk because it does not survive a full one: the file that it fails to
/// close stays open and crashes the process at its end. What it made is then copied by calls whose errors are ours to
/// handle.
class MemoryFile {
 public:
  explicit MemoryFile(const Parting& parting = {});

  /// Makes HDF5 use this in place of a file, for what is opened with `access`; that must be closed before this goes.
  void use_in(const PropertyList& access);

  std::uint64_t bytes() const { return bytes_; }
  void write_at(std::uint64_t offset, const void* data, std::size_t bytes);
  void read_at(std::uint64_t offset, void* data, std::size_t bytes) const;  ///< zero where nothing was written
  void resize(std::uint64_t bytes) { bytes_ = bytes; }

  /// Makes `file` as long and writes what was written here, but for the tensors' part, which others may be writing.
  void copy_to(const RawFile& file) const;

  enum class Content { structure, tensor };
  std::uint64_t allocate(Content content, std::uint64_t bytes);
  /// 0 before the first: HDF5 would look for a file in what has a length.
  std::uint64_t end_of_allocation() const { return next_structure_ == 0 ? 0 : static_cast<std::uint64_t>(end_); }
  void set_end_of_allocation(std::uint64_t end);

 private:
  static constexpr std::uint64_t page_bytes = std::uint64_t{1} << 14;
  using Page = std::array<std::byte, page_bytes>;

  std::map<std::uint64_t, Page> pages_;  // by offset
  std::uint64_t bytes_ = 0;
  Parting parting_;
  std::int64_t next_structure_ = 0;
  std::int64_t next_tensor_;
  std::int64_t end_;  ///< of all that is allocated
  Handle<H5FDunregister> driver_;
};

}  // namespace hortator::formats

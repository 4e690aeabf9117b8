#pragma once

#include <hdf5.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>  // since 1.14 drivers are declared in a header of their own
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "formats/file/raw_file.hpp"
#include "formats/hdf5/handle.hpp"

namespace hortator::formats {

/// The layout of a file, so that each tensor's offset is known before HDF5 creates anything: metadata first, then the
/// tensors up to `end`, each placed by place_dataset() in the order of creation. Metadata that does not fit before the
/// data is appended after it.
struct FileLayout {
  std::int64_t data_begin = std::int64_t{1} << 16;
  std::int64_t end = data_begin;
};

/// Returns the offset of a dataset that follows data ending at `after`. Large ones begin on a page, so that the ranges
/// of two ranks share none.
constexpr std::int64_t place_dataset(std::int64_t after, std::int64_t bytes) {
  const std::int64_t grain = bytes >= (std::int64_t{1} << 20) ? 4096 : 8;
  return (after + grain - 1) / grain * grain;
}

/// A sparse file in memory into which HDF5 writes. Unwritten ranges take no memory, however long the file is.
///
/// HDF5 writes our files here and not to the disk because it does not survive a full one: a file that it fails to close
/// stays open and crashes the process at exit. The result is then copied by calls whose errors we can handle.
class MemoryFile {
 public:
  explicit MemoryFile(const FileLayout& parting = {});

  /// Makes HDF5 use this as the file for everything opened with `access`, which must be closed before this is
  /// destroyed.
  void use_in(const PropertyList& access);

  std::uint64_t bytes() const { return bytes_; }
  void write_at(std::uint64_t offset, const void* data, std::size_t bytes);
  void read_at(std::uint64_t offset, void* data, std::size_t bytes) const;  ///< unwritten bytes are zero
  void resize(std::uint64_t bytes) { bytes_ = bytes; }

  /// Resizes `file` and copies what was written here, except the tensors' range, which other ranks may be writing.
  void copy_to(const RawFile& file) const;

  enum class Content { structure, tensor };
  std::uint64_t allocate(Content content, std::uint64_t bytes);
  /// 0 before the first allocation: HDF5 would try to read a file that has a length.
  std::uint64_t end_of_allocation() const { return next_structure_ == 0 ? 0 : static_cast<std::uint64_t>(end_); }
  void set_end_of_allocation(std::uint64_t end);

 private:
  static constexpr std::uint64_t page_bytes = std::uint64_t{1} << 14;
  using Page = std::array<std::byte, page_bytes>;

  std::map<std::uint64_t, Page> pages_;  // by offset
  std::uint64_t bytes_ = 0;
  FileLayout parting_;
  std::int64_t next_structure_ = 0;
  std::int64_t next_tensor_;
  std::int64_t end_;  ///< of all allocations
  Handle<H5FDunregister> driver_;
};

}  // namespace hortator::formats

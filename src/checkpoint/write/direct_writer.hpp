#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "checkpoint/format.hpp"
#include "checkpoint/write/save_task.hpp"
#include "checkpoint/write/tensor_source.hpp"
#include "core/checksum/crc.hpp"
#include "formats/file/piece_writer.hpp"

namespace hortator::checkpoint {

/// Computes the checksum of each block of the slices that it is fed. For a block that a slice covers only in part, it
/// is the checksum of that part.
class BlockChecksums {
 public:
  /// Begins a slice whose first byte has the offset `begin` in its tensor.
  void begin_slice(std::int64_t begin) {
    in_block_ = static_cast<std::size_t>(begin % block_bytes);
    opens_ = true;
  }

  void add(const std::byte* data, std::size_t bytes) {
    while (bytes > 0) {
      if (in_block_ == 0 || opens_) blocks_.push_back(0);
      opens_ = false;
      const auto count = std::min(bytes, static_cast<std::size_t>(block_bytes) - in_block_);
      blocks_.back() = core::crc32c(data, count, blocks_.back());
      in_block_ = (in_block_ + count) % static_cast<std::size_t>(block_bytes);
      data += count;
      bytes -= count;
    }
  }

  std::vector<std::uint32_t> take() { return std::move(blocks_); }

 private:
  std::vector<std::uint32_t> blocks_;
  std::size_t in_block_ = 0;
  bool opens_ = false;  ///< whether no byte of the slice has been added yet
};

/// Writes slices to a file and computes the checksums of their blocks while the bytes are in the processor's cache.
class SliceWriter {
 public:
  explicit SliceWriter(const formats::RawFile& file) : pieces_(file) {}

  /// Writes a slice from `offset` on. Slices must be added in the order of their offsets.
  void add(const TensorSource& source, std::int64_t offset);
  /// Hands the remaining bytes to the system and returns the checksums of all blocks.
  std::vector<std::uint32_t> finish();

 private:
  void add_slice(const TensorSource& source, std::int64_t offset);
  void add_bytes(std::int64_t offset, const std::byte* data, std::size_t bytes);

  formats::PieceWriter pieces_;
  BlockChecksums checksums_;
};

/// The checksums of the blocks of slices, as SliceWriter computes them, without writing.
std::vector<std::uint32_t> checksums_of(const std::vector<TensorSource>& sources);

/// Called with the number of bytes of tensors that this rank has just written.
using Advance = std::function<void(std::int64_t)>;

/// Writes this rank's part to its files without HDF5, and the files' structure if this rank creates them. Returns when
/// all of it is on the disk. `advance` may be empty.
RankReport write_part(const SaveTask& task, const Advance& advance = {});

}  // namespace hortator::checkpoint

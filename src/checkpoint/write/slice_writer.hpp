#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/write/block_checksums.hpp"
#include "checkpoint/write/tensor_source.hpp"
#include "formats/file/piece_writer.hpp"

namespace hortator::checkpoint {

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

}  // namespace hortator::checkpoint

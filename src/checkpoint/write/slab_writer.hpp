#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/block_checksums.hpp"
#include "checkpoint/write/source.hpp"
#include "formats/file/piece_writer.hpp"

namespace hortator::checkpoint {

/// Puts slabs into a file and takes the checksums of their blocks on the way, while the bytes are in the processor's
/// cache.
class SlabWriter {
 public:
  explicit SlabWriter(const formats::RawFile& file) : pieces_(file) {}

  /// The slab's first element goes to `offset`. Slabs come in the order of their offsets.
  void add(const Source& source, std::int64_t offset);
  /// Returns the checksums of all blocks when the system has all bytes.
  std::vector<std::uint32_t> finish();

 private:
  void add_slab(const Source& source, std::int64_t offset);
  void add_bytes(std::int64_t offset, const std::byte* data, std::size_t bytes);

  formats::PieceWriter pieces_;
  BlockChecksums checksums_;
};

}  // namespace hortator::checkpoint

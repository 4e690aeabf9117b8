#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/block_checksums.hpp"
#include "checkpoint/source.hpp"
#include "io/raw_file.hpp"

namespace hortator::checkpoint {

/// Puts slabs into a file in large pieces, small neighbours together, and takes the checksums of their blocks on the
/// way, while the bytes are in the processor's cache. Holds one piece of memory.
class SlabWriter {
 public:
  explicit SlabWriter(const io::RawFile& file) : file_(file) {}

  /// The slab's first element goes to `offset`. Slabs come in the order of their offsets.
  void add(const Source& source, std::int64_t offset);
  /// Returns the checksums of all blocks when the system has all bytes.
  std::vector<std::uint32_t> finish();

 private:
  void add_slab(const Source& source, std::int64_t offset);
  void add_bytes(std::int64_t offset, const std::byte* data, std::size_t bytes);
  void put(std::int64_t offset, const std::byte* data, std::size_t bytes);
  void flush();
  void written(std::int64_t end);

  const io::RawFile& file_;
  std::vector<std::byte> gathered_;
  std::int64_t gathered_at_ = 0;
  std::int64_t begun_ = 0;  ///< from here on the system has not been asked to write to the disk
  BlockChecksums checksums_;
};

/// Itself, or a copy, such that io::lies_flat().
at::Tensor ready_to_store(const at::Tensor& piece);

}  // namespace hortator::checkpoint

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/file/raw_file.hpp"

namespace hortator::formats {

/// Writes bytes to a file in large pieces while the disk works on the pieces before; small neighbours are written
/// together. Buffers at most one piece.
class PieceWriter {
 public:
  explicit PieceWriter(const RawFile& file) : file_(file) {}

  /// Call in the order of the offsets.
  void put(std::int64_t offset, const std::byte* data, std::size_t bytes);
  /// Call at the end: writes what is buffered.
  void finish();

 private:
  void flush();
  void written(std::int64_t end);

  const RawFile& file_;
  std::vector<std::byte> buffer_;
  std::int64_t buffer_offset_ = 0;
  std::int64_t write_back_end_ = 0;  ///< the system was asked to write everything before it to the disk
};

}  // namespace hortator::formats

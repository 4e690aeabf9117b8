#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/file/raw_file.hpp"

namespace hortator::formats {

/// Puts bytes into a file in large pieces, small neighbours together, while the disk works on those before. Holds one
/// piece of memory.
class PieceWriter {
 public:
  explicit PieceWriter(const RawFile& file) : file_(file) {}

  /// Pieces come in the order of their offsets.
  void put(std::int64_t offset, const std::byte* data, std::size_t bytes);
  /// Returns when the system has all bytes.
  void finish();

 private:
  void flush();
  void written(std::int64_t end);

  const RawFile& file_;
  std::vector<std::byte> gathered_;
  std::int64_t gathered_at_ = 0;
  std::int64_t begun_ = 0;  ///< from here on the system has not been asked to write to the disk
};

}  // namespace hortator::formats

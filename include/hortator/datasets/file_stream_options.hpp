#pragma once

#include <cstdint>

namespace hortator {

/// Options of LineStream, JsonStream and TarStream.
struct FileStreamOptions {
  /// The most bytes of a line, or of a file in an archive. More are an error, so that a small file that expands to
  /// terabytes cannot take all memory.
  std::uint64_t max_record_bytes = std::uint64_t{256} << 20;
};

}  // namespace hortator

#pragma once

#include <cstdint>

#include "formats/file/file_bytes.hpp"

namespace hortator::formats {

enum class Compression { none, gzip, zstd };

/// What has compressed a file, by its first bytes.
Compression compression_of(const FileBytes& read, std::uint64_t file_bytes);

}  // namespace hortator::formats

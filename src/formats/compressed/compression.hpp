#pragma once

#include <cstddef>
#include <string_view>

namespace hortator::formats {

enum class Compression { none, gzip, zstd };

/// The most that compression_of() looks at.
constexpr std::size_t compression_mark_bytes = 4;
/// What has compressed a file, by its first bytes.
Compression compression_of(std::string_view begin);

}  // namespace hortator::formats

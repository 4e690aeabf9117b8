#include "formats/compressed/compression.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace hortator::formats {

Compression compression_of(const FileBytes& read, std::uint64_t file_bytes) {
  constexpr std::size_t mark_bytes = 4;
  std::array<char, mark_bytes> bytes = {};
  const auto known = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), file_bytes));
  if (known > 0) read(0, bytes.data(), known);
  const std::string_view begin(bytes.data(), known);
  if (begin.starts_with("\x1f\x8b")) return Compression::gzip;
  if (begin.starts_with("\x28\xb5\x2f\xfd")) return Compression::zstd;
  const bool is_skippable =
      known == mark_bytes && (begin[0] & '\xf0') == '\x50' && begin.substr(1).starts_with("\x2a\x4d\x18");
  return is_skippable ? Compression::zstd : Compression::none;
}

}  // namespace hortator::formats

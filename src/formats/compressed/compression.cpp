#include "formats/compressed/compression.hpp"

namespace hortator::formats {

Compression compression_of(std::string_view begin) {
  if (begin.starts_with("\x1f\x8b")) return Compression::gzip;
  if (begin.starts_with("\x28\xb5\x2f\xfd")) return Compression::zstd;
  const bool is_skippable = begin.size() >= compression_mark_bytes && (begin[0] & '\xf0') == '\x50' &&
                            begin.substr(1).starts_with("\x2a\x4d\x18");
  return is_skippable ? Compression::zstd : Compression::none;
}

}  // namespace hortator::formats

#include "data/files/compressed_file.hpp"

#include <algorithm>
#include <array>

#include "core/text/text.hpp"
#include "formats/compressed/compression.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::data {

void refuse_compressed(const formats::FixedFile& file, const char* hint) {
  std::array<char, formats::compression_mark_bytes> begin = {};
  const auto known = static_cast<std::size_t>(std::min<std::uint64_t>(begin.size(), file.bytes()));
  if (known > 0) file.read_at(0, begin.data(), known);
  if (formats::compression_of({begin.data(), known}) == formats::Compression::none) return;
  throw formats::FileError({.what = text::concat(file.path(), " is compressed"),
                            .why = "samples are read from any place of a file",
                            .hint = hint});
}

}  // namespace hortator::data

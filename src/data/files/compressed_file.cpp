#include "data/files/compressed_file.hpp"

#include "core/text/text.hpp"
#include "formats/compressed/compression.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::data {

void refuse_compressed(const formats::FixedFile& file, const char* hint) {
  const auto read = [&](std::uint64_t offset, void* to, std::size_t bytes) { file.read_at(offset, to, bytes); };
  if (formats::compression_of(read, file.bytes()) == formats::Compression::none) return;
  throw formats::FileError({.what = text::concat(file.path(), " is compressed"),
                            .why = "samples are read from any place of a file",
                            .hint = hint});
}

}  // namespace hortator::data

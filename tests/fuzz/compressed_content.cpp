// Fuzzes the reader of files that may be compressed: any bytes are accepted or rejected, the content has one length
// whatever pieces it is read in, and a skip ends where reading does.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "formats/compressed/content_reader.hpp"
#include "target.hpp"

using namespace hortator::formats;

namespace {

constexpr std::uint64_t max_content = 1 << 20;

/// The bytes of the content, up to a limit; nothing if it is damaged.
std::optional<std::uint64_t> read_in_pieces(const FileBytes& read, std::size_t bytes, std::size_t piece) {
  try {
    ContentReader content(read, bytes);
    std::vector<char> some(piece);
    while (content.position() < max_content) {
      const auto before = content.position();
      const auto done = content.read(some.data(), some.size());
      if (done > some.size() || content.position() != before + done) __builtin_trap();
      if (done < some.size()) break;
    }
    return std::min(content.position(), max_content);
  } catch (const CompressionFault&) {
    return {};
  }
}

}  // namespace

FUZZ_TARGET(compressed_content) {
  const auto read = [&](std::uint64_t offset, void* to, std::size_t count) {
    if (offset > size || count > size - offset) __builtin_trap();
    std::memcpy(to, data + offset, count);
  };
  const auto whole = read_in_pieces(read, size, 1 << 16), pieces = read_in_pieces(read, size, 17);
  if (whole && pieces && *whole != *pieces) __builtin_trap();
  if (!whole || *whole == 0 || *whole == max_content) return 0;
  ContentReader content(read, size);
  if (!content.go_to(*whole) || content.go_to(*whole + 1)) __builtin_trap();
  return 0;
}

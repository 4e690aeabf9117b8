#include "checkpoint/gap_checksum.hpp"

#include <algorithm>

#include "core/checksum/crc.hpp"

namespace hortator::checkpoint {

std::uint32_t gap_checksum(std::vector<core::Range> ranges, std::int64_t file_bytes, const ReadAt& read) {
  constexpr std::int64_t chunk_bytes = std::int64_t{1} << 20;
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  ranges.push_back({file_bytes, file_bytes});
  std::vector<std::byte> chunk(chunk_bytes);
  std::uint32_t checksum = 0;
  std::int64_t end = 0;
  for (const auto& range : ranges) {
    for (; end < range.begin; end += std::min(chunk_bytes, range.begin - end)) {
      const auto bytes = static_cast<std::size_t>(std::min(chunk_bytes, range.begin - end));
      read(end, chunk.data(), bytes);
      checksum = core::crc32c(chunk.data(), bytes, checksum);
    }
    end = std::max(end, range.end);
  }
  return checksum;
}

}  // namespace hortator::checkpoint

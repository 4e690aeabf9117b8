#include "checkpoint/write/gaps.hpp"

#include <algorithm>

#include "core/checksum/crc32c.hpp"

namespace hortator::checkpoint {

std::uint32_t checksum_between(std::vector<core::Range> stretches, std::int64_t file_bytes, const ReadAt& read) {
  constexpr std::int64_t piece_bytes = std::int64_t{1} << 20;
  std::sort(stretches.begin(), stretches.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  stretches.push_back({file_bytes, file_bytes});
  std::vector<std::byte> piece(piece_bytes);
  std::uint32_t checksum = 0;
  std::int64_t end = 0;
  for (const auto& stretch : stretches) {
    for (; end < stretch.begin; end += std::min(piece_bytes, stretch.begin - end)) {
      const auto bytes = static_cast<std::size_t>(std::min(piece_bytes, stretch.begin - end));
      read(end, piece.data(), bytes);
      checksum = core::crc32c(piece.data(), bytes, checksum);
    }
    end = std::max(end, stretch.end);
  }
  return checksum;
}

}  // namespace hortator::checkpoint

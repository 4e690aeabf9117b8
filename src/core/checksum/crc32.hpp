#pragma once

#include <cstddef>
#include <cstdint>

namespace hortator::core {

/// CRC-32, the checksum of zip archives, of `bytes` bytes at `data`. To continue one, pass it as `before`.
std::uint32_t crc32(const void* data, std::size_t bytes, std::uint32_t before = 0);

}  // namespace hortator::core

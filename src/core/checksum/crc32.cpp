#include "core/checksum/crc32.hpp"

#include "core/checksum/crc_tables.hpp"

namespace hortator::core {

std::uint32_t crc32(const void* data, std::size_t bytes, std::uint32_t before) {
  return ~crc_add<0xedb88320>(~before, static_cast<const unsigned char*>(data), bytes);
}

}  // namespace hortator::core

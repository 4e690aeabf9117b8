#include "core/checksum/crc.hpp"

#include <string_view>

#include "support/catch.hpp"

TEST_CASE("CRC-32 is that of zip archives, in one piece or several") {
  const std::string_view digits = "123456789";
  CHECK(hortator::core::crc32("", 0) == 0);
  CHECK(hortator::core::crc32(digits.data(), 9) == 0xcbf43926);
  CHECK(hortator::core::crc32(digits.data() + 4, 5, hortator::core::crc32(digits.data(), 4)) == 0xcbf43926);
  CHECK(hortator::core::crc32("The quick brown fox jumps over the lazy dog", 43) == 0x414fa339);
}

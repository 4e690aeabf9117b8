#include "core/checksum/crc.hpp"

#include <string>
#include <string_view>

#include "support/catch.hpp"

using hortator::core::crc32c;
using hortator::core::crc32c_portable;

namespace {

std::string some_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  std::uint64_t state = 88172645463325252ULL;
  for (auto& byte : bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<char>(state);
  }
  return bytes;
}

std::uint32_t of(std::string_view bytes, std::uint32_t before = 0) {
  return crc32c(bytes.data(), bytes.size(), before);
}

}  // namespace

TEST_CASE("CRC-32C of what the standards print") {
  CHECK(of("") == 0);
  CHECK(of("123456789") == 0xe3069283);
  // RFC 3720, B.4
  CHECK(of(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(of(std::string(32, '\xff')) == 0x62a8ab43);
  std::string rising;
  for (char byte = 0; byte < 32; ++byte) rising += byte;
  CHECK(of(rising) == 0x46dd794e);
}

TEST_CASE("the instruction gives what the tables give, at every length, and pieces give the whole") {
  const auto bytes = some_bytes(100'000);
  for (const std::size_t length : {1, 7, 8, 9, 4095, 4096, 12287, 12288, 12289, 24576, 40000, 99'999}) {
    const auto whole = of(std::string_view(bytes).substr(1, length));
    CHECK(whole == crc32c_portable(bytes.data() + 1, length));
    const auto half = length / 2;
    CHECK(of(std::string_view(bytes).substr(1 + half, length - half), of(std::string_view(bytes).substr(1, half))) ==
          whole);
  }
}

TEST_CASE("checksums of two parts that were taken apart give the whole's") {
  const auto bytes = some_bytes(70'000);
  for (const std::size_t first : {0, 1, 63, 4096, 69'999, 70'000}) {
    const auto a = of(std::string_view(bytes).substr(0, first));
    const auto b = of(std::string_view(bytes).substr(first));
    CHECK(hortator::core::crc32c_joined(a, b, bytes.size() - first) == of(bytes));
  }
}

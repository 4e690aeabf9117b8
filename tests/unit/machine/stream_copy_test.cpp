#include "machine/memory/stream_copy.hpp"

#include <string>

#include "support/catch.hpp"

TEST_CASE("every length is copied from and to every alignment, and nothing beyond") {
  std::string source(1000, ' ');
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>('a' + i % 26);
  for (const std::size_t length : {0, 1, 15, 63, 64, 65, 127, 128, 500, 700}) {
    for (const std::size_t from : {0, 1, 7, 32}) {
      for (std::size_t to = 0; to < 70; to += 3) {
        std::string target(1000, '.');
        hortator::machine::stream_copy(target.data() + to, source.data() + from, length);
        std::string expected(1000, '.');
        expected.replace(to, length, source, from, length);
        if (target != expected) FAIL_CHECK(length << " bytes from " << from << " to " << to);
      }
    }
  }
}

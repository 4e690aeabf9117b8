#include "core/range.hpp"

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("balanced parts cover everything once, in order, and differ by at most one") {
  for (std::int64_t total = 0; total <= 40; ++total) {
    for (std::int64_t parts = 1; parts <= 9; ++parts) {
      std::int64_t next = 0;
      for (std::int64_t part = 0; part < parts; ++part) {
        const auto range = core::balanced(total, parts, part);
        CHECK(range.begin == next);
        CHECK((range.size() == total / parts || range.size() == total / parts + 1));
        next = range.end;
      }
      CHECK(next == total);
    }
  }
  CHECK(core::balanced(std::int64_t{1} << 40, 3, 2).end == std::int64_t{1} << 40);
}

TEST_CASE("aligned parts cover everything once and begin on the grain") {
  for (std::int64_t total = 0; total <= 70; ++total) {
    for (std::int64_t parts = 1; parts <= 6; ++parts) {
      std::int64_t next = 0;
      for (std::int64_t part = 0; part < parts; ++part) {
        const auto range = core::aligned(total, parts, part, 8);
        CHECK(range.begin == next);
        CHECK((range.begin % 8 == 0 || range.begin == total));
        next = range.end;
      }
      CHECK(next == total);
    }
  }
}

#include "core/time.hpp"

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("times are written in UTC, by any format") {
  CHECK(core::utc(0) == "1970-01-01T00:00:00Z");
  CHECK(core::utc(1'700'000'000) == "2023-11-14T22:13:20Z");
  CHECK(core::utc(1'700'000'000, "%Y%m%dT%H%M%S") == "20231114T221320");
  CHECK(core::utc().size() == 20);
}

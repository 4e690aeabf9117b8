#include "core/text/units.hpp"

#include "support/catch.hpp"

using namespace hortator;
using std::chrono::duration;

TEST_CASE("bytes, times and numbers are printed with units") {
  CHECK(units::bytes(0) == "0 B");
  CHECK(units::bytes(1023) == "1023 B");
  CHECK(units::bytes(1536) == "1.5 KiB");
  CHECK(units::bytes(std::uint64_t{3} << 30) == "3.0 GiB");
  CHECK(units::duration(duration<double>(0.0008)) == "0.8 ms");
  CHECK(units::duration(duration<double>(12.34)) == "12.3 s");
  CHECK(units::duration(duration<double>(200)) == "3 min 20 s");
  CHECK(units::duration(duration<double>(7500)) == "2 h 05 min");
  CHECK(units::duration(duration<double>(-1)) == "?");
  CHECK(units::number(0.012345) == "0.0123");
}

TEST_CASE("sizes are parsed with units") {
  CHECK(units::parse_bytes("4096") == 4096);
  CHECK(units::parse_bytes("64MiB") == std::uint64_t{64} << 20);
  CHECK(units::parse_bytes("1.5 KiB") == 1536);
  CHECK(units::parse_bytes("2GB") == 2'000'000'000);
  CHECK(units::parse_bytes("0") == 0);
  CHECK(units::parse_bytes(" +5 mB\n") == 5'000'000);
  CHECK(units::parse_bytes("9007199254740993 B") == 9007199254740993);
  CHECK(units::parse_bytes("5MB\r\n") == 5'000'000);
  CHECK(units::parse_bytes(".5GB") == 500'000'000);
  CHECK(units::parse_bytes("1gib") == std::uint64_t{1} << 30);
  CHECK(units::parse_bytes("12 b") == 12);
  for (const auto* bits : {"1Gb", "1gb", "2.5 Mb"})
    CHECK_THROWS_WITH(units::parse_bytes(bits), ContainsSubstring("a small b may mean bits"));
  for (const auto* bad :
       {"", "MiB", "-1", "5 apples", "1.5KiBs", "1.5", "inf", "nan MB", "1e300", "1PB", "GB1", "1_0MB", "+-0KB"}) {
    CHECK_THROWS_WITH(units::parse_bytes(bad), ContainsSubstring("Invalid byte count"));
  }
}

TEST_CASE("times are parsed only with units") {
  using namespace std::chrono_literals;
  CHECK(units::parse_duration("500ms") == 500ms);
  CHECK(units::parse_duration("30s") == 30s);
  CHECK(units::parse_duration("10 min") == 10min);
  CHECK(units::parse_duration("1.5h") == 90min);
  for (const char* bad : {"", "10", "s", "ten min", "10 minutes", "-1s", "0s", "nan s", "inf s", "1e300 h", "5s "}) {
    CHECK_FALSE(units::parse_duration(bad));
  }
}

#include "machine/memory/memory_limit.hpp"

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("MemAvailable is read in bytes") {
  CHECK(machine::parse_mem_available("MemTotal:       24 kB\nMemAvailable:   10 kB\nBuffers: 3 kB\n") == 10 * 1024);
  CHECK_FALSE(machine::parse_mem_available("MemTotal: 24 kB\n"));
  CHECK_FALSE(machine::parse_mem_available("MemAvailable:\n"));
  CHECK_FALSE(machine::parse_mem_available(""));
}

TEST_CASE("a control group leaves its limit minus its use") {
  CHECK(machine::left_in_group("1000\n", "400\n", "") == 600);
  CHECK(machine::left_in_group("1000\n", "1400\n", "") == 0);
  CHECK(machine::left_in_group("1000\n", "900\n", "anon 1\ninactive_file 500\nactive_file 300\n") == 900);
  CHECK_FALSE(machine::left_in_group("max\n", "400\n", ""));
  CHECK_FALSE(machine::left_in_group("", "", ""));
}

TEST_CASE("this machine has memory left") { CHECK(machine::available_memory().value_or(1) > 0); }

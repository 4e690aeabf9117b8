#include "bigmodel/max_memory.hpp"

#include <hortator/bigmodel/big_models.hpp>
#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("sizes are given as texts") {
  CHECK(parse_size("16GiB") == 16 * 0x1p30);
  CHECK(parse_size("12GB") == 12e9);
  CHECK(parse_size("1.5 mib") == 1.5 * 0x1p20);
  CHECK(parse_size("4096") == 4096);
  CHECK_THROWS_AS(parse_size("2Gb"), UsageError);
  CHECK_THROWS_AS(parse_size("a lot"), UsageError);
}

TEST_CASE("host memory is divided among the ranks of a node") {
  for (const int ranks : {1, 2, 3, 8})
    CHECK(bigmodel::max_memory({.host = 2400, .local_size = ranks}) ==
          MaxMemory{{DevicePlacement::cpu(), 2400.0 / ranks}});
}

TEST_CASE("the only rank of a node has all devices, any other its own") {
  const std::map<int, std::size_t> devices = {{0, 10}, {1, 20}};
  CHECK(bigmodel::max_memory({.free_by_device = devices, .own_device = 0, .host = 100}) ==
        MaxMemory{{DevicePlacement::cuda(0), 10}, {DevicePlacement::cuda(1), 20}, {DevicePlacement::cpu(), 100}});
  CHECK(bigmodel::max_memory({.free_by_device = devices, .own_device = 1, .host = 100, .local_size = 2}) ==
        MaxMemory{{DevicePlacement::cuda(1), 20}, {DevicePlacement::cpu(), 50}});
}

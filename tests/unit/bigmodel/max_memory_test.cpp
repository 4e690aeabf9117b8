#include "bigmodel/max_memory.hpp"

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("host memory is divided among the ranks of a node") {
  for (const int ranks : {1, 2, 3, 8})
    CHECK(bigmodel::max_memory({.host = 2400, .local_size = ranks}) == MaxMemory{{Place::cpu(), 2400.0 / ranks}});
}

TEST_CASE("a rank alone on its node has all devices, any other its own") {
  const std::map<int, std::size_t> devices = {{0, 10}, {1, 20}};
  CHECK(bigmodel::max_memory({.free_of_devices = devices, .own_device = 0, .host = 100}) ==
        MaxMemory{{Place::cuda(0), 10}, {Place::cuda(1), 20}, {Place::cpu(), 100}});
  CHECK(bigmodel::max_memory({.free_of_devices = devices, .own_device = 1, .host = 100, .local_size = 2}) ==
        MaxMemory{{Place::cuda(1), 20}, {Place::cpu(), 50}});
}

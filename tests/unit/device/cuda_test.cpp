#include "device/cuda.hpp"

#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("a machine without devices has none, and no error") {
  CHECK_NOTHROW(device::visible_device_count());
  CHECK(device::visible_device_count() >= 0);
  if (!device::is_built()) CHECK(device::visible_device_count() == 0);
}

TEST_CASE("a device that is not there cannot be had") {
  const int beyond = device::visible_device_count();
  CHECK_THROWS_AS(device::name(beyond), Error);
  CHECK_THROWS_AS(device::uuid(beyond), Error);
  if (!device::is_built()) CHECK_THROWS_WITH(device::set_current(0), ContainsSubstring("built without CUDA"));
}

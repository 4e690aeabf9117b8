#include "machine/device/cuda.hpp"

#include <hortator/error.hpp>

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("a machine without devices has none, and no error") {
  CHECK_NOTHROW(machine::visible_device_count());
  CHECK(machine::visible_device_count() >= 0);
  if (!machine::is_built()) CHECK(machine::visible_device_count() == 0);
}

TEST_CASE("a missing device is an error") {
  const int beyond = machine::visible_device_count();
  CHECK_THROWS_AS(machine::name(beyond), Error);
  CHECK_THROWS_AS(machine::uuid(beyond), Error);
  if (!machine::is_built()) CHECK_THROWS_WITH(machine::set_current(0), ContainsSubstring("built without CUDA"));
}

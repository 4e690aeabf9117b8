#include "device/cuda.hpp"

#include <hortator/error.hpp>
#include <set>

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

TEST_CASE("devices that are there have names and UUIDs of their own") {
  std::set<std::string> uuids;
  for (int i = 0; i < device::visible_device_count(); ++i) {
    CHECK_FALSE(device::name(i).empty());
    CHECK(device::uuid(i).size() == std::string("GPU-01234567-89ab-cdef-0123-456789abcdef").size());
    uuids.insert(device::uuid(i));
    CHECK_NOTHROW(device::set_current(i));
  }
  CHECK(static_cast<int>(uuids.size()) == device::visible_device_count());
}

#include "machine/device/monitor.hpp"

#include <dlfcn.h>

#include <chrono>
#include <thread>

#include "machine/device/background_monitor.hpp"
#include "machine/device/device.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

/// The number of initialisations without shutdown; the library stays loaded.
int users_of_the_library() {
  static void* const library = dlopen(HORTATOR_TEST_NVML, RTLD_NOW);
  return reinterpret_cast<int (*)()>(dlsym(library, "fake_nvml_users"))();
}

}  // namespace

TEST_CASE("a device is monitored through the driver's library, which is released") {
  CHECK(users_of_the_library() == 0);
  {
    const machine::DeviceMonitor monitor("GPU-whole", HORTATOR_TEST_NVML);
    CHECK(users_of_the_library() == 1);
    const auto use = monitor.look();
    REQUIRE(use);
    CHECK(use->busy == 0.4);
    CHECK(use->used_bytes == 6ull << 30);
    CHECK(use->total_bytes == 80ull << 30);
  }
  CHECK(users_of_the_library() == 0);
}

TEST_CASE("unknown values of a device stay empty") {
  const machine::DeviceMonitor part("MIG-part", HORTATOR_TEST_NVML);
  const auto use = part.look();
  REQUIRE(use);
  CHECK_FALSE(use->busy.has_value());
  CHECK(use->total_bytes == 10ull << 30);
  CHECK_FALSE(machine::DeviceMonitor("GPU-other", HORTATOR_TEST_NVML).look().has_value());
  CHECK_FALSE(machine::DeviceMonitor("GPU-whole", "absent.so").look().has_value());
  CHECK_FALSE(machine::DeviceMonitor("GPU-whole", "libm.so.6").look().has_value());
}

TEST_CASE("a thread asks the driver, and the library is released at its end") {
  const auto answer_of = [](const char* uuid) {
    machine::BackgroundMonitor monitor(uuid, HORTATOR_TEST_NVML);
    std::optional<machine::DeviceUse> use;
    for (int i = 0; i < 100 && !use; ++i) {
      use = monitor.last();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return use;
  };
  const auto use = answer_of("GPU-whole");
  REQUIRE(use);
  CHECK(use->busy == 0.4);
  CHECK_FALSE(answer_of("GPU-other"));
  CHECK(users_of_the_library() == 0);
}

TEST_CASE("the driver's own library knows the devices that CUDA sees") {
  for (const auto device : machine::visible_devices()) {
    const auto use = machine::DeviceMonitor(machine::identify(device).uuid, machine::kind_of(device)->monitor).look();
    REQUIRE(use);
    CHECK(use->total_bytes > 1ull << 30);
    CHECK(use->used_bytes <= use->total_bytes);
    CHECK((!use->busy || (*use->busy >= 0 && *use->busy <= 1)));
  }
}

#include "machine/device/monitor.hpp"

#include <dlfcn.h>

#include <chrono>
#include <thread>

#include "machine/device/background_monitor.hpp"
#include "machine/device/monitors/level_zero.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

constexpr machine::MonitorLibrary nvml = {.file = HORTATOR_TEST_NVML, .open = machine::open_nvml};
constexpr machine::MonitorLibrary amdsmi = {.file = HORTATOR_TEST_AMDSMI, .open = machine::open_amdsmi};
constexpr machine::MonitorLibrary level_zero = {.file = HORTATOR_TEST_LEVEL_ZERO, .open = machine::open_level_zero};

/// The number of initialisations without shutdown; the library stays loaded.
int users_of(const char* file, const char* counter) {
  void* const library = dlopen(file, RTLD_NOW);
  return reinterpret_cast<int (*)()>(dlsym(library, counter))();
}
int users_of_nvml() { return users_of(HORTATOR_TEST_NVML, "fake_nvml_users"); }
int users_of_amdsmi() { return users_of(HORTATOR_TEST_AMDSMI, "fake_amdsmi_users"); }

std::unique_ptr<machine::DeviceMonitor> monitor_of(const machine::MonitorLibrary& library, const char* uuid,
                                                   const char* pci_address = "") {
  return library.open(library.file, {.name = "", .uuid = uuid, .pci_address = pci_address});
}

}  // namespace

TEST_CASE("a device is monitored through the driver's library, which is released") {
  CHECK(users_of_nvml() == 0);
  {
    const auto monitor = monitor_of(nvml, "GPU-whole");
    CHECK(users_of_nvml() == 1);
    const auto use = monitor->look();
    REQUIRE(use);
    CHECK(use->busy == 0.4);
    CHECK(use->used_bytes == 6ull << 30);
    CHECK(use->total_bytes == 80ull << 30);
  }
  CHECK(users_of_nvml() == 0);
}

TEST_CASE("unknown values of a device stay empty") {
  const auto use = monitor_of(nvml, "MIG-part")->look();
  REQUIRE(use);
  CHECK_FALSE(use->busy.has_value());
  CHECK(use->total_bytes == 10ull << 30);
  CHECK_FALSE(monitor_of(nvml, "GPU-other")->look().has_value());
}

TEST_CASE("without a vendor's library, or with another one, nothing is known of a device") {
  for (const auto open : {machine::open_nvml, machine::open_amdsmi, machine::open_level_zero}) {
    for (const char* file : {"absent.so", "libm.so.6"}) {
      const auto monitor = monitor_of({.file = file, .open = open}, "GPU-whole", "0000:03:00.0");
      CHECK_FALSE(monitor->look().has_value());
    }
  }
}

TEST_CASE("amdsmi finds a device by its PCI address, and is released") {
  {
    const auto use = monitor_of(amdsmi, "", "0001:c3:00.1")->look();
    REQUIRE(use);
    CHECK(use->busy == 0.7);
    CHECK(use->used_bytes == 5ull << 30);
    CHECK(use->total_bytes == 64ull << 30);
    const auto silent = monitor_of(amdsmi, "", "0000:03:00.0");
    CHECK(users_of_amdsmi() == 1);
    REQUIRE(silent->look());
    CHECK_FALSE(silent->look()->busy);
  }
  CHECK_FALSE(monitor_of(amdsmi, "", "0000:04:00.0")->look());
  CHECK_FALSE(monitor_of(amdsmi, "", "no address")->look());
  CHECK(users_of_amdsmi() == 0);
}

TEST_CASE("Level Zero reports the use of all tiles of a device, and of its engines since the last look") {
  const auto monitor = monitor_of(level_zero, "", "0000:4f:00.0");
  for (int look = 0; look < 3; ++look) {
    const auto use = monitor->look();
    REQUIRE(use);
    CHECK(use->busy == 0.25);
    CHECK(use->used_bytes == 8ull << 30);
    CHECK(use->total_bytes == 128ull << 30);
  }
  CHECK(monitor_of(level_zero, "", "0000:4e:00.0")->look()->total_bytes == 64ull << 30);
  CHECK_FALSE(monitor_of(level_zero, "", "0000:50:00.0")->look());
}

TEST_CASE("Level Zero lists devices as LibTorch does: integrated ones only where there are no others") {
  const auto devices = machine::level_zero_devices(HORTATOR_TEST_LEVEL_ZERO);
  REQUIRE(devices.size() == 2);
  CHECK(devices[0].name == "Fictitious GPU 1");
  CHECK(devices[0].uuid == "1f1e1d1c-1b1a-1918-1716-151413121110");
  CHECK(devices[0].pci_address == "0000:4e:00.0");
  CHECK(devices[1].pci_address == "0000:4f:00.0");
  CHECK(machine::level_zero_devices("absent.so").empty());
}

TEST_CASE("a thread asks the driver, and the library is released at its end") {
  const auto answer_of = [](const char* uuid) {
    machine::BackgroundMonitor monitor({.name = "", .uuid = uuid, .pci_address = ""}, nvml);
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
  CHECK(use->joules == 1234.567);
  CHECK_FALSE(answer_of("GPU-other"));
  CHECK(users_of_nvml() == 0);
}

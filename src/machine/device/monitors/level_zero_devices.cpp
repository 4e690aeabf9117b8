// Which devices there are, by Level Zero's core functions.
#include <algorithm>
#include <array>

#include "machine/device/monitors/level_zero.hpp"

namespace hortator::machine {
namespace {

// Constants of ze_api.h.
constexpr std::uint32_t core_gpus = 1;
constexpr std::uint32_t core_gpu = 1;
constexpr std::uint32_t core_integrated = 1;
constexpr std::uint32_t core_properties_kind = 0x3;
constexpr std::uint32_t core_pci_kind = 0x10008;
struct CoreProperties {
  LevelZeroHeader header{.kind = core_properties_kind};
  std::uint32_t type = 0;
  std::uint32_t vendor = 0;
  std::uint32_t device = 0;
  std::uint32_t flags = 0;
  std::uint32_t others_before[2] = {};
  std::uint64_t largest_allocation = 0;
  std::uint32_t others_after[7] = {};
  std::uint64_t timer_resolution = 0;
  std::uint32_t timer_bits[2] = {};
  std::array<std::uint8_t, 16> uuid = {};
  char name[256] = {};
};

// As xpu-smi prints it: the last byte first.
std::string uuid_text(const std::array<std::uint8_t, 16>& uuid) {
  std::string text;
  for (int i = 15; i >= 0; --i) {
    char pair[3];
    std::snprintf(pair, sizeof pair, "%02x", uuid[static_cast<std::size_t>(i)]);
    text += pair;
    if (i == 12 || i == 10 || i == 8 || i == 6) text += '-';
  }
  return text;
}

}  // namespace

std::vector<DeviceIdentity> level_zero_devices(const char* file) {
  std::vector<DeviceIdentity> separate;
  std::vector<DeviceIdentity> integrated;
  const LoadedLibrary library(file);
  if (!library.call("zeInit", core_gpus)) return {};
  for (auto* const driver : level_zero_handles(library, "zeDriverGet")) {
    for (auto* const device : level_zero_handles(library, "zeDeviceGet", driver)) {
      CoreProperties properties;
      LevelZeroPci pci{.header = {.kind = core_pci_kind}};
      if (!library.call("zeDeviceGetProperties", device, &properties) || properties.type != core_gpu) continue;
      const bool has_address = library.call("zeDevicePciGetPropertiesExt", device, &pci);
      ((properties.flags & core_integrated) != 0 ? integrated : separate)
          .push_back({.name = properties.name,
                      .uuid = uuid_text(properties.uuid),
                      .pci_address = has_address ? to_text(pci.address) : std::string()});
    }
  }
  return separate.empty() ? integrated : separate;
}

}  // namespace hortator::machine

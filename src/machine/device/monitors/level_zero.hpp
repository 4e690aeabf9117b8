#pragma once

#include <cstdint>
#include <vector>

#include "machine/device/device.hpp"
#include "machine/device/monitors/loaded_library.hpp"
#include "machine/device/monitors/pci_address.hpp"

namespace hortator::machine {

/// The devices that this process sees, in LibTorch's order: ZE_AFFINITY_MASK applies, and integrated ones count only if
/// there are no others. `file` is Level Zero's loader. None without the library or a driver.
std::vector<DeviceIdentity> level_zero_devices(const char* file);

/// All handles that one of Level Zero's functions lists. It is called with the number of handles and a place for them;
/// without a place it returns their number.
template <typename... Arguments>
std::vector<void*> level_zero_handles(const LoadedLibrary& library, const char* name, Arguments... arguments) {
  std::uint32_t count = 0;
  if (!library.call(name, arguments..., &count, static_cast<void**>(nullptr)) || count == 0) return {};
  std::vector<void*> handles(count);
  if (!library.call(name, arguments..., &count, handles.data())) return {};
  handles.resize(count);
  return handles;
}

/// The beginning of a struct that tells what it is.
struct LevelZeroHeader {
  std::uint32_t kind;
  void* next = nullptr;
};

/// What both the core and the system management say of a device's bus.
struct LevelZeroPci {
  LevelZeroHeader header;
  PciAddress address = {};
  std::int32_t generation = 0;
  std::int32_t width = 0;
  std::int64_t bandwidth = 0;
  std::uint8_t counters[8] = {};  ///< of the system management
};

}  // namespace hortator::machine

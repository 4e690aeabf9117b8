#pragma once

#include <cstdint>
#include <memory>
#include <optional>

namespace hortator::machine {

struct DeviceIdentity;

/// The use of a device by all processes.
struct DeviceUse {
  std::optional<double> busy = {};  ///< share of the recent time in which it computed; unknown for MIG instances
  std::uint64_t used_bytes = 0;
  std::uint64_t total_bytes = 0;
  std::optional<double> joules = {};  ///< since the driver was loaded
};

/// Monitors a device through the management library that comes with the vendor's driver. It is loaded at run time:
/// Hortator is not linked to it. Without the library, or if it does not know the device, look() returns nothing.
class DeviceMonitor {
 public:
  DeviceMonitor() = default;
  virtual ~DeviceMonitor() = default;
  DeviceMonitor(const DeviceMonitor&) = delete;
  DeviceMonitor& operator=(const DeviceMonitor&) = delete;

  virtual std::optional<DeviceUse> look() = 0;
};

/// A vendor's library, and how it is used.
struct MonitorLibrary {
  const char* file;  ///< "libnvidia-ml.so.1"
  std::unique_ptr<DeviceMonitor> (*open)(const char* file, const DeviceIdentity& device);
};

/// NVIDIA's NVML, which knows devices by their UUID.
std::unique_ptr<DeviceMonitor> open_nvml(const char* file, const DeviceIdentity& device);
/// AMD's amdsmi, which knows devices by their PCI address.
std::unique_ptr<DeviceMonitor> open_amdsmi(const char* file, const DeviceIdentity& device);
/// The system management of Intel's Level Zero, which knows devices by their PCI address. The share of time is that
/// since the last look.
std::unique_ptr<DeviceMonitor> open_level_zero(const char* file, const DeviceIdentity& device);

}  // namespace hortator::machine

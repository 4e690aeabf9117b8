#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hortator::machine {

/// The use of a device by all processes.
struct DeviceUse {
  std::optional<double> busy = {};  ///< share of the recent time in which it computed; unknown for MIG instances
  std::uint64_t used_bytes = 0;
  std::uint64_t total_bytes = 0;
};

/// Monitors a device through NVIDIA's management library (DeviceKind::monitor), which comes with the driver. It is
/// loaded at run time: Hortator is not linked to it. Without the library, or if it does not know the device, look()
/// returns nothing.
class DeviceMonitor {
 public:
  explicit DeviceMonitor(const std::string& uuid, const char* library);
  ~DeviceMonitor();
  DeviceMonitor(const DeviceMonitor&) = delete;
  DeviceMonitor& operator=(const DeviceMonitor&) = delete;

  std::optional<DeviceUse> look() const;

 private:
  void* library_;
  bool is_started_;
  void* device_ = nullptr;  ///< nvmlDevice_t
};

}  // namespace hortator::machine

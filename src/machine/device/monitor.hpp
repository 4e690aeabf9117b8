#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hortator::machine {

/// A device, whoever uses it.
struct DeviceUse {
  std::optional<double> busy = {};  ///< share of the last moments in which it computed; not known of parts of one (MIG)
  std::uint64_t used_bytes = 0;
  std::uint64_t total_bytes = 0;
};

/// Looks at a device by NVIDIA's management library, which comes with the driver and is loaded here and now: Hortator
/// is not linked to it. Where it is missing, or does not know the device, there is nothing to see.
class DeviceMonitor {
 public:
  explicit DeviceMonitor(const std::string& uuid, const char* library = "libnvidia-ml.so.1");
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

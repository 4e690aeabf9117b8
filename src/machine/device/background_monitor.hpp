#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "machine/device/device.hpp"
#include "machine/device/monitor.hpp"

namespace hortator::machine {

/// Monitors a device from a thread of its own: a driver may take milliseconds to answer, and much longer the first
/// time.
class BackgroundMonitor {
 public:
  BackgroundMonitor(DeviceIdentity device, MonitorLibrary library);

  /// The last answer, and asks for the next one. Empty until the first has come, and if the device is unknown. Does not
  /// wait.
  std::optional<DeviceUse> last();

 private:
  void answer(const std::stop_token& stop, const DeviceIdentity& device, const MonitorLibrary& library);

  std::mutex mutex_;
  std::condition_variable_any asked_;
  bool is_asked_ = true;
  std::optional<DeviceUse> last_;
  std::jthread thread_;  ///< the last member: it uses the others
};

}  // namespace hortator::machine

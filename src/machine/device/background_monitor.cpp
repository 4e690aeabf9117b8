#include "machine/device/background_monitor.hpp"

#include <utility>

namespace hortator::machine {

BackgroundMonitor::BackgroundMonitor(DeviceIdentity device, MonitorLibrary library)
    : thread_([this, device = std::move(device), library](const std::stop_token& stop) {
        answer(stop, device, library);
      }) {}

std::optional<DeviceUse> BackgroundMonitor::last() {
  const std::scoped_lock lock(mutex_);
  is_asked_ = true;
  asked_.notify_one();
  return last_;
}

void BackgroundMonitor::answer(const std::stop_token& stop, const DeviceIdentity& device,
                               const MonitorLibrary& library) {
  const auto monitor = library.open(library.file, device);
  std::unique_lock lock(mutex_);
  while (asked_.wait(lock, stop, [this] { return is_asked_; })) {
    is_asked_ = false;
    lock.unlock();
    const auto use = monitor->look();
    lock.lock();
    last_ = use;
  }
}

}  // namespace hortator::machine

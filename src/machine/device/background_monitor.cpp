#include "machine/device/background_monitor.hpp"

#include <utility>

namespace hortator::machine {

BackgroundMonitor::BackgroundMonitor(std::string uuid, const char* library)
    : thread_([this, uuid = std::move(uuid), library](const std::stop_token& stop) { answer(stop, uuid, library); }) {}

std::optional<DeviceUse> BackgroundMonitor::last() {
  const std::scoped_lock lock(mutex_);
  is_asked_ = true;
  asked_.notify_one();
  return last_;
}

void BackgroundMonitor::answer(const std::stop_token& stop, const std::string& uuid, const char* library) {
  const DeviceMonitor monitor(uuid, library);
  std::unique_lock lock(mutex_);
  while (asked_.wait(lock, stop, [this] { return is_asked_; })) {
    is_asked_ = false;
    lock.unlock();
    const auto use = monitor.look();
    lock.lock();
    last_ = use;
  }
}

}  // namespace hortator::machine

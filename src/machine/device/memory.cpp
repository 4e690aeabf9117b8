#include "machine/device/memory.hpp"

#include <ATen/Context.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <mutex>
#include <utility>

#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "machine/device/device.hpp"
#include "machine/device/kind_memory.hpp"

namespace hortator::machine {
namespace {

std::mutex act_mutex;
std::function<void(std::uint64_t)> current_act;

bool is_used(c10::Device device) {
  return at::globalContext().getAcceleratorHooksInterface(device.type()).hasPrimaryContext(device.index());
}

/// Makes a device that this process uses already the thread's: page-locked memory belongs to no device, and a thread
/// that has not chosen its device would make a context on the node's first one.
class AnyUsedDevice {
 public:
  AnyUsedDevice() {
    const auto devices = visible_devices();
    if (devices.empty()) return;
    const auto current = c10::impl::VirtualGuardImpl(devices.front().type()).getDevice();
    const auto used = std::ranges::find_if(devices, is_used);
    if (used != devices.end() && !is_used(current)) guard_.reset_device(*used);
  }

 private:
  c10::OptionalDeviceGuard guard_;
};

}  // namespace

std::shared_ptr<void> page_locked(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const AnyUsedDevice device;
  std::string reason;
  auto memory = lock_pages(bytes, reason);
  if (memory == nullptr) {
    throw Error({.what = text::concat("Cannot allocate ", units::bytes(bytes), " of page-locked memory: ", reason),
                 .why = "only copies from and to such memory overlap with the device's work",
                 .hint = "request more memory from the scheduler: page-locked memory counts as memory of the job"});
  }
  auto* const begin = memory.get();
  return {begin, [memory = std::move(memory)](void*) mutable {
            const AnyUsedDevice of_release;
            memory.reset();
          }};
}

void on_out_of_memory(std::function<void(std::uint64_t)> act) {
  static std::once_flag observed;
  if (act) std::call_once(observed, observe_out_of_memory);
  const std::scoped_lock lock(act_mutex);
  current_act = std::move(act);
}

void report_out_of_memory(std::uint64_t asked_bytes) {
  std::unique_lock lock(act_mutex);
  const auto act = current_act;
  lock.unlock();
  if (act) act(asked_bytes);
}

}  // namespace hortator::machine

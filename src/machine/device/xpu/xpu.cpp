#include <ATen/core/CachingHostAllocator.h>

#include <algorithm>

#include "core/text/text.hpp"
#include "machine/device/device.hpp"
#include "machine/device/kind_memory.hpp"
#include "machine/device/monitor.hpp"
#include "machine/device/monitors/level_zero.hpp"

namespace hortator::machine {

const DeviceKind* accelerator_kind() {
  static const auto* const kind = &*std::ranges::find(known_kinds(), "xpu", &DeviceKind::name);
  return kind;
}

// LibTorch's own properties of a device need SYCL's headers and compiler.
DeviceIdentity identify(c10::Device device) {
  static const auto known = level_zero_devices(accelerator_kind()->monitor->file);
  const auto index = static_cast<std::size_t>(device.index());
  if (index >= known.size())
    throw_no_answer(device, text::concat("Level Zero reports ", text::count(std::ssize(known), "device")));
  return known[index];
}

// LibTorch's memory for non-blocking copies, which rounds up to powers of two: exact sizes need SYCL.
std::shared_ptr<void> lock_pages(std::size_t bytes, std::string& reason) {
  auto* const allocator = at::getHostAllocator(c10::kXPU);
  if (allocator == nullptr) {
    reason = "this LibTorch has none for XPU";
    return nullptr;
  }
  try {
    const auto memory = std::make_shared<c10::DataPtr>(allocator->allocate(bytes));
    return {memory, memory->get()};
  } catch (const c10::Error& error) {
    reason = error.what_without_backtrace();
    return nullptr;
  }
}

// LibTorch's allocator for XPU has no observers: only allocations of Hortator's own report.
void observe_out_of_memory() {}

}  // namespace hortator::machine

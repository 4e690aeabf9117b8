#include "machine/device/device.hpp"

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/version.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "machine/device/memory.hpp"

namespace hortator::machine {

std::vector<c10::Device> visible_devices() {
  std::vector<c10::Device> devices;
  const auto* const kind = accelerator_kind();
  const int count = kind == nullptr ? 0 : c10::impl::VirtualGuardImpl(kind->type).deviceCount();
  for (int index = 0; index < count; ++index) devices.emplace_back(kind->type, static_cast<c10::DeviceIndex>(index));
  return devices;
}

std::vector<std::string> visible_uuids() {
  std::vector<std::string> uuids;
  for (const auto device : visible_devices()) uuids.push_back(identify(device).uuid);
  return uuids;
}

bool is_in_use() {
  return std::ranges::any_of(visible_devices(), [](c10::Device device) {
    return at::globalContext().getAcceleratorHooksInterface(device.type()).hasPrimaryContext(device.index());
  });
}

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 10
std::size_t free_memory(c10::Device device) {
  try {
    return c10::getDeviceAllocator(device.type())->getMemoryInfo(device.index()).first;
  } catch (const c10::Error& error) {
    throw_no_answer(device, error.what_without_backtrace());
  }
}
#endif

void release_cached_memory(c10::Device device) { c10::getDeviceAllocator(device.type())->emptyCache(); }

void set_current(c10::Device device) { c10::impl::VirtualGuardImpl(device.type()).setDevice(device); }

void throw_no_answer(c10::Device device, std::string_view reason) {
  const auto& kind = *kind_of(device);
  throw Error({.what = text::concat(kind.title, " device ", int{device.index()}, " does not answer: ", reason),
               .why = "a rank cannot work without its device",
               .hint = text::concat("check ", kind.tool, " on this node, or exclude the node from the job")});
}

}  // namespace hortator::machine

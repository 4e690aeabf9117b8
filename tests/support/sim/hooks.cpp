// The devices under LibTorch's name for the kind, with generators and page-locked memory.
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "support/sim/current.hpp"
#include "support/sim/generator.hpp"
#include "support/sim/host_memory.hpp"
#include "support/sim/memory.hpp"
#include "support/sim/sim.hpp"

namespace hortator::sim {
namespace {

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex index) const override { return has_context(index); }
  c10::DeviceIndex deviceCount() const override { return devices; }
  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(current_device()); }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_current_device(index); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return static_cast<c10::DeviceIndex>(exchange_current_device(index));
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return exchangeDevice(index); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return new_generator(index); }
  c10::Device getDeviceFromPtr(void* data) const override {
    const auto* const block = block_at(near(data));
    return block != nullptr && block->device >= 0 ? device(block->device) : device(current_device());
  }
  bool isPinnedPtr(const void* data) const override { return is_page_locked(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return host_allocator(); }
};

[[maybe_unused]] const bool is_known = [] {
  c10::register_privateuse1_backend("sim");
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

}  // namespace
}  // namespace hortator::sim

// The hooks that LibTorch needs to run backward on the device.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceType.h>

#include "support/far_device.hpp"

namespace hortator::test {
namespace {

struct FarHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*index*/) const override { return true; }
  c10::Device getDeviceFromPtr(void* /*data*/) const override { return far_device; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
};

[[maybe_unused]] const bool is_known = [] {
  c10::register_privateuse1_backend("far");
  at::RegisterPrivateUse1HooksInterface(new FarHooks);
  return true;
}();

}  // namespace
}  // namespace hortator::test

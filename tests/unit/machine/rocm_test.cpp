// The room `device` for ROCm, over stand-ins for HIP and for the allocator of a LibTorch for ROCm.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <hortator/error.hpp>

#include "fake_hip.hpp"
#include "machine/device/device.hpp"
#include "machine/device/graph.hpp"
#include "machine/device/memory.hpp"
#include "machine/device/stream.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

struct CUDAHooks final : at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
};

c10::Device rocm(int index) { return {c10::kCUDA, static_cast<c10::DeviceIndex>(index)}; }

}  // namespace

namespace at {
REGISTER_CUDA_HOOKS(CUDAHooks);
}
namespace c10::impl {
struct FakeGuard final : NoOpDeviceGuardImpl<c10::kCUDA> {
  Stream getDefaultStream(Device device) const override { return Stream(Stream::DEFAULT, device); }
};
C10_REGISTER_GUARD_IMPL(CUDA, FakeGuard);
}  // namespace c10::impl

TEST_CASE("ROCm's devices are named as AMD's tools name them") {
  CHECK(machine::accelerator_kind()->name == "rocm");
  CHECK(machine::kind_of(rocm(0)) == machine::accelerator_kind());
  const auto device = machine::identify(rocm(1));
  CHECK(device.name == "Fictitious Instinct 1");
  CHECK(device.uuid == "GPU-fedcba9876543210");
  CHECK(device.pci_address == "0000:c1:00.0");
  CHECK(machine::visible_uuids() == std::vector<std::string>{"GPU-0123456789abcdef"});
  CHECK_THROWS_WITH(machine::identify(rocm(2)), ContainsSubstring("ROCm device 2 does not answer: invalid device") &&
                                                    ContainsSubstring("check rocm-smi on this node"));
}

TEST_CASE("ROCm's page-locked memory is HIP's, and a refusal has HIP's reason") {
  {
    const auto memory = machine::page_locked(4096);
    CHECK(memory != nullptr);
    CHECK(test::fake_hip().locked_blocks == 1);
  }
  CHECK(test::fake_hip().locked_blocks == 0);
  const auto before = test::fake_hip().last_errors_read;
  CHECK_THROWS_WITH(machine::page_locked(std::size_t{2} << 20),
                    ContainsSubstring("Cannot allocate 2.0 MiB of page-locked memory: out of memory"));
  CHECK(test::fake_hip().last_errors_read == before + 1);
  CHECK(machine::page_locked(0) == nullptr);
}

TEST_CASE("ROCm's allocator reports that memory has run out, to the function that is registered then") {
  CHECK_FALSE(test::is_observed());
  std::uint64_t asked = 0;
  machine::on_out_of_memory([&](std::uint64_t bytes) { asked = bytes; });
  REQUIRE(test::is_observed());
  test::run_out_of_memory(77);
  CHECK(asked == 77);
  machine::on_out_of_memory({});
  test::run_out_of_memory(88);
  CHECK(asked == 77);
}

TEST_CASE("steps on ROCm are not recorded, and streams of HIP are refused") {
  CHECK_FALSE(machine::accelerator_kind()->records_steps);
  CHECK_THROWS_WITH(machine::Graph(rocm(0)), ContainsSubstring("ROCm devices cannot record work"));
  int stream = 0;
  CHECK_THROWS_WITH(machine::stream_of_native(&stream, rocm(0)), ContainsSubstring("on a device of ROCm"));
  CHECK(machine::stream_of_native(nullptr, rocm(0)).device() == rocm(0));
}

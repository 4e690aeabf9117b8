// The room `device` for XPU, over stand-ins for Level Zero and for LibTorch's library for XPU.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/XPUHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <cstdlib>
#include <hortator/error.hpp>

#include "machine/device/device.hpp"
#include "machine/device/graph.hpp"
#include "machine/device/memory.hpp"
#include "machine/device/monitor.hpp"
#include "machine/device/stream.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

struct XPUHooks final : at::XPUHooksInterface {
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
};

int locked_blocks = 0;

struct FakeHostAllocator final : at::HostAllocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    ++locked_blocks;
    auto* const memory = std::malloc(bytes);
    return {memory, memory, [](void* begin) { std::free(begin), --locked_blocks; }, c10::kCPU};
  }
  void copy_data(void*, const void*, std::size_t) const override {}
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

c10::Device xpu(int index) { return {c10::kXPU, static_cast<c10::DeviceIndex>(index)}; }

}  // namespace

namespace at {
REGISTER_XPU_HOOKS(XPUHooks);
}
namespace c10::impl {
C10_REGISTER_GUARD_IMPL(XPU, NoOpDeviceGuardImpl<c10::kXPU>);
}

TEST_CASE("XPU's devices are those of Level Zero, and are monitored by it") {
  CHECK(machine::accelerator_kind()->name == "xpu");
  const auto device = machine::identify(xpu(1));
  CHECK(device.name == "Fictitious GPU 2");
  CHECK(device.pci_address == "0000:4f:00.0");
  CHECK(machine::visible_uuids() == std::vector<std::string>{"1f1e1d1c-1b1a-1918-1716-151413121110"});
  const auto& library = *machine::accelerator_kind()->monitor;
  const auto use = library.open(library.file, device)->look();
  REQUIRE(use);
  CHECK(use->total_bytes == 128ull << 30);
  CHECK_THROWS_WITH(machine::identify(xpu(2)),
                    ContainsSubstring("XPU device 2 does not answer: Level Zero reports 2 devices"));
}

TEST_CASE("XPU's page-locked memory is LibTorch's, and without it an error") {
  CHECK_THROWS_WITH(machine::page_locked(4096),
                    ContainsSubstring("Cannot allocate 4.0 KiB of page-locked memory: this LibTorch has none for XPU"));
  FakeHostAllocator allocator;
  at::setHostAllocator(c10::kXPU, &allocator);
  {
    const auto memory = machine::page_locked(4096);
    CHECK(memory != nullptr);
    CHECK(locked_blocks == 1);
  }
  CHECK(locked_blocks == 0);
}

TEST_CASE("steps on XPU are not recorded, and streams of SYCL are refused") {
  CHECK_FALSE(machine::accelerator_kind()->records_steps);
  CHECK_THROWS_WITH(machine::Graph(xpu(0)), ContainsSubstring("XPU devices cannot record work"));
  int stream = 0;
  CHECK_THROWS_WITH(machine::stream_of_native(&stream, xpu(0)), ContainsSubstring("on a device of XPU"));
}

// The memory of the devices, as LibTorch's caching allocator.
#include <c10/core/CachingDeviceAllocator.h>

#include "support/sim/current.hpp"
#include "support/sim/memory.hpp"
#include "support/sim/streams.hpp"
#include "support/sim/tensors.hpp"

namespace hortator::sim {
namespace {

void release_context(void* block) { release(static_cast<Block*>(block)); }

constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const auto device = current_device();
    if (bytes == 0) return {nullptr, sim::device(device)};
    make_context(device);
    auto* const block = sim::allocate(current_stream(device), bytes);
    auto* const address = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(block->memory) | far_bit);  // NOLINT
    return {address, block, release_context, sim::device(device)};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    auto* const target = near(to);
    auto* const source = near(const_cast<void*>(from));  // NOLINT
    submit(current_stream(current_device()),
           {.name = "copy_data",
            .uses = {{block_at(source), {0, bytes}, false}, {block_at(target), {0, bytes}, true}},
            .run = [=](const Dice&) { std::copy_n(source, bytes, target); }});
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t /*pool*/) override {
    for (int device = 0; device < devices; ++device) empty_cache(device);
  }
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    if (auto* const block = block_at(near(data.get()))) note_use(*block, number_of(stream));
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    const auto use = memory_use(device);
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocated_bytes[all].current = use.allocated;
    stats.allocated_bytes[all].peak = use.peak;
    stats.reserved_bytes[all].current = use.reserved;
    stats.num_ooms = use.out_of_memory;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex /*device*/) override {}
  void resetPeakStats(c10::DeviceIndex device) override { reset_memory_peak(device); }
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const auto use = memory_use(device);
    constexpr std::size_t unlimited = std::size_t{4} << 30U;
    const auto total = use.limit == 0 ? unlimited : use.limit;
    return {total - std::min(total, static_cast<std::size_t>(use.reserved)), total};
  }
};

}  // namespace

c10::Allocator& device_allocator() {
  static auto& allocator = *new Allocator;
  return allocator;
}

namespace {
[[maybe_unused]] const bool is_registered = (c10::SetAllocator(c10::kPrivateUse1, &device_allocator()), true);
}

}  // namespace hortator::sim

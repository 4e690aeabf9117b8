#include "machine/memory/recycling_allocator.hpp"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <set>

#include "core/log.hpp"
#include "machine/shapes/counted_memory.hpp"

namespace hortator::machine {
namespace {

constexpr std::size_t min_block = std::size_t{1} << 20;
constexpr std::uint8_t priority = 1;  // above LibTorch's allocator, which has 0

/// Serves all CPU memory of LibTorch. Small blocks, and all blocks while recycling is off, come from the former
/// allocator. Once installed it stays: oneDNN frees by address and uses whichever allocator is installed then.
class Allocator final : public c10::Allocator {
 public:
  explicit Allocator(c10::Allocator& former) : former_(former) { former_raw = former.raw_deleter(); }

  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes < min_block || !is_wanted) return former_.allocate(bytes);
    const auto block = blocks().take(bytes);
    if (block.data == nullptr) return former_.allocate(bytes);  // which then throws LibTorch's error
    c10::profiledCPUMemoryReporter().New(block.data, block.bytes);
    return {block.data, block.data, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return former_raw == nullptr ? nullptr : &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }

  static inline std::atomic<bool> is_wanted = false;
  static RecycledBlocks& blocks() {
    static auto& blocks = *new RecycledBlocks;
    return blocks;
  }

 private:
  static void release(void* data) {
    const auto block = blocks().taken_at(data);
    if (!block) return former_raw.load()(data);
    c10::profiledCPUMemoryReporter().Delete(data);
    blocks().put_back(*block);
  }

  static inline std::atomic<c10::DeleterFnPtr> former_raw = nullptr;
  c10::Allocator& former_;
};

/// Never destroyed: storages refer to their allocator.
struct Shared {
  std::mutex mutex;
  std::multiset<std::size_t> caps;
  Allocator* allocator = nullptr;
};
Shared& shared() {
  static auto& shared = *new Shared;
  return shared;
}

void install(Shared& shared) {
  if (counts_memory()) return;
  auto* present = c10::GetCPUAllocator();
  if (present == shared.allocator) return;
  shared.allocator = new Allocator(*present);
  c10::SetCPUAllocator(shared.allocator, priority);
  if (c10::GetCPUAllocator() != shared.allocator)
    log::warn("Gradient memory is not recycled: this program has set its own CPU allocator");
}

}  // namespace

RecyclingAllocator::RecyclingAllocator(std::size_t cap_bytes) : cap_bytes_(cap_bytes) {
  auto& all = shared();
  const std::lock_guard lock(all.mutex);
  install(all);
  Allocator::is_wanted = true;
  all.caps.insert(cap_bytes);
  Allocator::blocks().set_cap(*all.caps.rbegin());
}

RecyclingAllocator::~RecyclingAllocator() {
  auto& all = shared();
  const std::lock_guard lock(all.mutex);
  all.caps.erase(all.caps.find(cap_bytes_));
  Allocator::is_wanted = !all.caps.empty();
  Allocator::blocks().set_cap(all.caps.empty() ? 0 : *all.caps.rbegin());
}

RecycledBlocks::Counters RecyclingAllocator::counters() { return Allocator::blocks().counters(); }
void RecyclingAllocator::reset_peak() { Allocator::blocks().reset_peak(); }

void RecyclingAllocator::trim() {
  auto& all = shared();
  const std::lock_guard lock(all.mutex);
  Allocator::blocks().set_cap(0);
  if (!all.caps.empty()) Allocator::blocks().set_cap(*all.caps.rbegin());
}

}  // namespace hortator::machine

#include "machine/shapes/counted_memory.hpp"

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <unordered_map>

namespace hortator::machine {
namespace {

/// Smaller blocks are ordinary memory, set to zero.
constexpr std::size_t smallest_reserved = std::size_t{64} << 10;
constexpr std::uint8_t above_all_others = 255;

thread_local std::string_view made_by;

struct Block {
  std::size_t bytes = 0;
  std::uint64_t number = 0;  ///< in the order in which blocks were made
  std::string_view made_by;
  bool is_mapped = false;
};

/// Never destroyed: tensors are freed until the very end of the process.
class Ledger {
 public:
  void add(const void* data, Block block) {
    const std::lock_guard lock(mutex_);
    block.number = ++count_;
    now_ += block.bytes;
    blocks_[data] = block;
    if (now_ <= peak_) return;
    peak_ = now_;
    last_of_peak_ = count_;
    gone_since_peak_.clear();
  }

  Block remove(const void* data) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(data);
    if (found == blocks_.end()) return {};
    const auto block = found->second;
    now_ -= block.bytes;
    blocks_.erase(found);
    if (block.number <= last_of_peak_)
      gone_since_peak_.push_back({.data = data, .bytes = block.bytes, .made_by = block.made_by, .is_live = false});
    return block;
  }

  MemoryPeak peak() const {
    const std::lock_guard lock(mutex_);
    MemoryPeak found{.bytes = peak_, .allocations = gone_since_peak_};
    for (const auto& [data, block] : blocks_) {
      if (block.number <= last_of_peak_)
        found.allocations.push_back({.data = data, .bytes = block.bytes, .made_by = block.made_by});
    }
    return found;
  }

  std::size_t now() const {
    const std::lock_guard lock(mutex_);
    return now_;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const void*, Block> blocks_;
  std::vector<Allocation> gone_since_peak_;
  std::uint64_t count_ = 0, last_of_peak_ = 0;
  std::size_t now_ = 0, peak_ = 0;
};

Ledger& ledger() {
  static auto& ledger = *new Ledger;
  return ledger;
}

/// Above LibTorch's own allocator, from which it takes what is not reserved.
class CountingAllocator final : public c10::Allocator {
 public:
  CountingAllocator(c10::Allocator& former, CountedMemory kind) : former_(former), kind_(kind) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::kCPU)};
    const bool reserves = kind_ == CountedMemory::reserved;
    const bool is_mapped = reserves && bytes >= smallest_reserved;
    void* const data = is_mapped ? map(bytes) : former_.raw_allocate(bytes);
    if (reserves && !is_mapped) std::memset(data, 0, bytes);
    ledger().add(data, {.bytes = bytes, .made_by = made_by, .is_mapped = is_mapped});
    return {data, data, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }

  static inline std::atomic<CountingAllocator*> installed = nullptr;
  CountedMemory kind() const { return kind_; }

 private:
  static void* map(std::size_t bytes) {
    void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TORCH_CHECK(data != MAP_FAILED, "No addresses are left for ", bytes, " bytes");
    return data;
  }

  static void release(void* data) {
    if (data == nullptr) return;
    const auto block = ledger().remove(data);
    if (block.is_mapped) {
      munmap(data, block.bytes);
    } else {
      installed.load()->former_.raw_deallocate(data);
    }
  }

  c10::Allocator& former_;
  CountedMemory kind_;
};

}  // namespace

void count_memory(CountedMemory kind) {
  static std::once_flag once;
  std::call_once(once, [&] {
    auto* const allocator = new CountingAllocator(*c10::GetCPUAllocator(), kind);
    CountingAllocator::installed = allocator;
    c10::SetCPUAllocator(allocator, above_all_others);
  });
}

bool counts_memory() noexcept { return CountingAllocator::installed.load() != nullptr; }

bool reserves_memory() noexcept {
  const auto* const installed = CountingAllocator::installed.load();
  return installed != nullptr && installed->kind() == CountedMemory::reserved;
}

void note_memory(const void* data, std::size_t bytes, std::string_view made_by) {
  if (counts_memory() && bytes > 0) ledger().add(data, {.bytes = bytes, .made_by = made_by});
}

void forget_memory(const void* data) noexcept {
  if (counts_memory()) ledger().remove(data);
}

MemoryPeak memory_peak() { return ledger().peak(); }
std::size_t counted_bytes() { return ledger().now(); }

MemoryMaker::MemoryMaker(std::string_view name) noexcept : is_outermost_(made_by.empty()) {
  if (is_outermost_) made_by = name;
}

MemoryMaker::~MemoryMaker() {
  if (is_outermost_) made_by = {};
}

}  // namespace hortator::machine

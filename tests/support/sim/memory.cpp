#include "support/sim/memory.hpp"

#include <c10/util/Exception.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <tuple>

#include "support/sim/operators/recording.hpp"
#include "support/sim/state.hpp"
#include "support/sim/streams.hpp"

namespace hortator::sim {
namespace {

constexpr std::size_t granularity = 512;

struct Deferred {
  Block* block;
  std::vector<Event> events;
};

struct Memory {
  std::map<std::tuple<int, int, std::size_t>, std::vector<Block*>> free;  // by pool, stream and size
  std::map<std::uintptr_t, Block*> by_address;
  std::vector<Deferred> deferred;
  std::array<MemoryUse, devices> use;
  std::vector<void (*)(int, std::size_t)> observers;
};

Memory& memory() {
  static auto& all = *new Memory;
  return all;
}

MemoryUse& use_of(int device) { return memory().use.at(static_cast<std::size_t>(device)); }

void retire(Block& block) {
  block.in_use = false;
  ++block.releases;
  block.other_streams.clear();
  submit_poison(block);
  memory().free[{block.pool, block.stream, block.bytes}].push_back(&block);
}

// The uses that were waited for are over: they are no races with what comes.
void reclaim() {
  std::erase_if(memory().deferred, [](Deferred& one) {
    for (const auto& event : one.events)
      if (!has_passed(event)) return false;
    one.block->history.clear();
    retire(*one.block);
    return true;
  });
}

Block* reuse(int pool, int stream, std::size_t bytes) {
  const auto found = memory().free.find({pool, stream, bytes});
  if (found == memory().free.end() || found->second.empty()) return nullptr;
  auto* const block = found->second.back();
  found->second.pop_back();
  block->in_use = true;
  ++mutable_counts().reused_blocks;
  return block;
}

bool fits(int device, std::size_t bytes) {
  const auto& use = use_of(device);
  return use.limit == 0 || static_cast<std::size_t>(use.reserved) + bytes <= use.limit;
}

Block* make(int pool, int stream, std::size_t bytes) {
  const auto device = device_of(stream);
  auto* const begin = static_cast<char*>(std::aligned_alloc(granularity, bytes));
  if (begin == nullptr) return nullptr;
  std::memset(begin, 0xff, bytes);  // NaN, in every type that has one
  auto* const block = new Block{.memory = begin, .bytes = bytes, .device = device, .stream = stream, .pool = pool};
  add_block(*block);
  use_of(device).reserved += static_cast<std::int64_t>(bytes);
  ++mutable_counts().new_blocks;
  return block;
}

[[noreturn]] void throw_out_of_memory(int device, std::size_t bytes) {
  std::unique_lock lock(state_lock());
  auto& use = use_of(device);
  ++use.out_of_memory;
  const auto observers = memory().observers;
  const auto limit = use.limit;
  lock.unlock();
  for (auto* const observer : observers) observer(device, bytes);
  TORCH_CHECK_WITH(OutOfMemoryError, false, "sim out of memory. Tried to allocate ", bytes, " bytes on device ", device,
                   ", which has ", limit);
}

void return_to_host(Block* block) {
  remove_block(*block);
  use_of(block->device).reserved -= static_cast<std::int64_t>(block->bytes);
  std::free(block->memory);
  delete block;
}

}  // namespace

Block* allocate(int stream, std::size_t bytes) {
  const auto device = device_of(stream);
  bytes = (bytes + granularity - 1) / granularity * granularity;
  std::unique_lock lock(state_lock());
  reclaim();
  const auto* const recording = recording_of(stream);
  const auto pool = recording == nullptr ? 0 : recording->pool;
  auto* block = reuse(pool, stream, bytes);
  if (block == nullptr && !fits(device, bytes)) {
    lock.unlock();
    empty_cache(device);
    lock.lock();
  }
  if (block == nullptr && fits(device, bytes)) block = make(pool, stream, bytes);
  if (block == nullptr) {
    lock.unlock();
    throw_out_of_memory(device, bytes);
  }
  auto& use = use_of(device);
  use.allocated += static_cast<std::int64_t>(bytes);
  use.peak = std::max(use.peak, use.allocated);
  return block;
}

void release(Block* block) {
  const std::scoped_lock lock(state_lock());
  use_of(block->device).allocated -= static_cast<std::int64_t>(block->bytes);
  if (block->other_streams.empty()) return retire(*block);
  Deferred later{.block = block, .events = {}};
  for (const auto stream : block->other_streams) record(later.events.emplace_back(), stream);
  memory().deferred.push_back(std::move(later));
  ++mutable_counts().deferred_blocks;
}

void note_use(Block& block, int stream) {
  const std::scoped_lock lock(state_lock());
  auto& others = block.other_streams;
  if (stream != block.stream && std::ranges::find(others, stream) == others.end()) others.push_back(stream);
}

void empty_cache(int device) {
  if (is_recording(device)) return;
  run_device(device);
  const std::scoped_lock lock(state_lock());
  reclaim();
  for (auto& [key, blocks] : memory().free) {
    const auto [pool, stream, bytes] = key;
    if (pool != 0 || device_of(stream) != device) continue;
    // The poison of a block that was only just reclaimed is still to come.
    std::erase_if(blocks, [](Block* block) {
      if (!is_idle_now(block->stream)) return false;
      return_to_host(block);
      return true;
    });
  }
}

Block* block_at(const void* address) {
  const std::scoped_lock lock(state_lock());
  const auto key = reinterpret_cast<std::uintptr_t>(address);  // NOLINT
  auto found = memory().by_address.upper_bound(key);
  if (found == memory().by_address.begin()) return nullptr;
  --found;
  return key < found->first + found->second->bytes ? found->second : nullptr;
}

void add_block(Block& block) {
  const std::scoped_lock lock(state_lock());
  memory().by_address[reinterpret_cast<std::uintptr_t>(block.memory)] = &block;  // NOLINT
}

void remove_block(const Block& block) {
  const std::scoped_lock lock(state_lock());
  memory().by_address.erase(reinterpret_cast<std::uintptr_t>(block.memory));  // NOLINT
}

void dissolve_pool(int pool) {
  const std::scoped_lock lock(state_lock());
  auto& free = memory().free;
  for (auto entry = free.begin(); entry != free.end();) {
    const auto [of, stream, bytes] = entry->first;
    if (of != pool) {
      ++entry;
      continue;
    }
    auto& to = free[{0, stream, bytes}];
    to.insert(to.end(), entry->second.begin(), entry->second.end());
    entry = free.erase(entry);
  }
  for (auto& [address, block] : memory().by_address)
    if (block->pool == pool) block->pool = 0;
}

void observe_out_of_memory(void (*observer)(int, std::size_t)) {
  const std::scoped_lock lock(state_lock());
  memory().observers.push_back(observer);
}

MemoryUse memory_use(int device) {
  const std::scoped_lock lock(state_lock());
  return use_of(device);
}

void reset_memory_peak(int device) {
  const std::scoped_lock lock(state_lock());
  use_of(device).peak = use_of(device).allocated;
}

void set_memory_limit(int device, std::size_t bytes) {
  const std::scoped_lock lock(state_lock());
  use_of(device).limit = bytes;
}

std::size_t allocated_bytes(int device) { return static_cast<std::size_t>(memory_use(device).allocated); }
std::size_t reserved_bytes(int device) { return static_cast<std::size_t>(memory_use(device).reserved); }

}  // namespace hortator::sim

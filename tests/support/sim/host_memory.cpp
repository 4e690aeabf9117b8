#include "support/sim/host_memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <list>
#include <vector>

#include "support/sim/current.hpp"
#include "support/sim/memory.hpp"
#include "support/sim/state.hpp"
#include "support/sim/streams.hpp"

namespace hortator::sim {
namespace {

std::atomic<std::size_t> bytes_in_use = 0;

Block* make_block(std::size_t bytes) {
  auto* const begin = static_cast<char*>(std::malloc(std::max<std::size_t>(bytes, 1)));
  if (begin == nullptr) throw std::bad_alloc();
  std::memset(begin, 0xff, bytes);
  auto* const block = new Block{.memory = begin, .bytes = bytes, .device = -1, .stream = 0};
  add_block(*block);
  bytes_in_use += bytes;
  return block;
}

void destroy(Block* block) {
  remove_block(*block);
  bytes_in_use -= block->bytes;
  std::free(block->memory);
  delete block;
}

struct Late {
  Block* block;
  std::vector<Event> events;
};

std::list<Late>& late_blocks() {
  static auto& all = *new std::list<Late>;
  return all;
}

void destroy_passed() {
  late_blocks().remove_if([](const Late& late) {
    const auto is_over = std::ranges::all_of(late.events, [](const Event& event) { return has_passed(event); });
    if (is_over) destroy(late.block);
    return is_over;
  });
}

void release_late(void* context) {
  const std::scoped_lock lock(state_lock());
  Late late{.block = static_cast<Block*>(context), .events = {}};
  for (const auto stream : late.block->other_streams) record(late.events.emplace_back(), stream);
  late_blocks().push_back(std::move(late));
  destroy_passed();
}

class HostAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, c10::kCPU};
    const std::scoped_lock lock(state_lock());
    destroy_passed();
    auto* const block = make_block(bytes);
    return {block->memory, block, release_late, c10::kCPU};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
};

void wait_and_destroy(void* address) {
  make_context(current_device());
  run_all();
  destroy(block_at(address));
}

}  // namespace

c10::Allocator* host_allocator() {
  static auto& allocator = *new HostAllocator;
  return &allocator;
}

std::shared_ptr<void> page_locked_memory(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  make_context(current_device());
  return {make_block(bytes)->memory, wait_and_destroy};
}

bool is_page_locked(const void* address) {
  const auto* const block = block_at(address);
  return block != nullptr && block->device < 0;
}

std::size_t pinned_bytes() { return bytes_in_use; }

}  // namespace hortator::sim

#include "machine/races/memory_uses.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hortator::machine {
namespace {

template <typename Condition>
void forget(AccessHistory& history, Condition condition) {
  std::erase_if(history.writes, condition);
  std::erase_if(history.reads, condition);
}

// Memory comes to another stream, and memory of the host to another owner, only after all work is done.
void end_ownership(AccessHistory& history, const MemoryOwner& old, int next_timeline) {
  const bool was_waited_for = old.timeline != next_timeline || old.timeline == host_timeline;
  forget(history, [&](const Access& access) {
    const bool is_inside = old.begin <= access.bytes.begin && access.bytes.end <= old.end;
    return is_inside && (was_waited_for || std::ranges::find(old.kept_for, access.timeline) != old.kept_for.end());
  });
}

bool is_owner(const MemoryOwner& owner, std::uintptr_t begin, const void* storage) {
  return owner.storage == storage && owner.begin == begin;
}

template <typename List>
void append(List& to, List from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

MemoryUses::Regions::iterator MemoryUses::containing(std::uintptr_t begin, std::uintptr_t end) {
  auto found = regions_.upper_bound(begin);
  if (found == regions_.begin()) return regions_.end();
  --found;
  return end <= found->second.end ? found : regions_.end();
}

AccessHistory* MemoryUses::find(std::uintptr_t begin, std::uintptr_t end) {
  const auto found = containing(begin, end);
  return found == regions_.end() ? nullptr : &found->second.history;
}

AccessHistory* MemoryUses::find(std::uintptr_t begin, std::uintptr_t end, const void* storage) {
  const auto found = containing(begin, end);
  if (found == regions_.end()) return nullptr;
  const auto is_known = std::ranges::any_of(found->second.owners,
                                            [&](const MemoryOwner& owner) { return is_owner(owner, begin, storage); });
  return is_known ? &found->second.history : nullptr;
}

// Allocators cut and join their memory: a region grows with what overlaps it.
MemoryUses::Region& MemoryUses::merged(std::uintptr_t begin, std::uintptr_t end) {
  Region all{.end = end};
  auto next = regions_.lower_bound(begin);
  if (next != regions_.begin() && std::prev(next)->second.end > begin) --next;
  while (next != regions_.end() && next->first < end) {
    begin = std::min(begin, next->first);
    all.end = std::max(all.end, next->second.end);
    append(all.history.writes, std::move(next->second.history.writes));
    append(all.history.reads, std::move(next->second.history.reads));
    append(all.owners, std::move(next->second.owners));
    next = regions_.erase(next);
  }
  return regions_[begin] = std::move(all);
}

MemoryUses::Region& MemoryUses::region_of(std::uintptr_t begin, std::uintptr_t end) {
  const auto found = containing(begin, end);
  return found == regions_.end() ? merged(begin, end) : found->second;
}

AccessHistory& MemoryUses::of_range(std::uintptr_t begin, std::uintptr_t end) { return region_of(begin, end).history; }

AccessHistory& MemoryUses::add(MemoryOwner owner) {
  auto& region = region_of(owner.begin, owner.end);
  std::erase_if(region.owners, [&](const MemoryOwner& old) {
    if (old.end <= owner.begin || owner.end <= old.begin || !old.is_gone()) return false;
    end_ownership(region.history, old, owner.timeline);
    return true;
  });
  region.owners.push_back(std::move(owner));
  return region.history;
}

void MemoryUses::keep_for(std::uintptr_t begin, int stream) {
  const auto found = containing(begin, begin + 1);
  if (found == regions_.end()) return;
  for (auto& owner : found->second.owners)
    if (owner.begin == begin && !owner.is_gone()) owner.kept_for.push_back(stream);
}

}  // namespace hortator::machine

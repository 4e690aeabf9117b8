#include "simulation/samples/priority_keys.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "core/hash.hpp"

namespace hortator::simulation {

double priority_key(double priority, std::uint64_t key, std::int64_t number) {
  if (priority <= 0) return -std::numeric_limits<double>::infinity();
  const auto bits = core::mix(key, static_cast<std::uint64_t>(number)) >> 11U;  // 53 of them
  const double uniform = (static_cast<double>(bits) + 0.5) * 0x1p-53;
  return std::log(uniform) / priority;
}

std::optional<std::int64_t> PriorityKeys::place(double key) {
  auto slot = static_cast<std::int64_t>(heap_.size());
  if (slot == capacity_) {
    if (key <= heap_.front().first) return {};
    std::ranges::pop_heap(heap_, std::greater{});
    slot = heap_.back().second;
    heap_.pop_back();
  }
  heap_.emplace_back(key, slot);
  std::ranges::push_heap(heap_, std::greater{});
  return slot;
}

std::vector<double> PriorityKeys::of_slots() const {
  std::vector<double> keys(heap_.size());
  for (const auto& [key, slot] : heap_) keys[static_cast<std::size_t>(slot)] = key;
  return keys;
}

void PriorityKeys::assign(const std::vector<double>& keys) {
  heap_.clear();
  for (const double key : keys) place(key);
}

}  // namespace hortator::simulation

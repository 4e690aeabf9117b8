#include "simulation/samples/slots.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/hash.hpp"

namespace hortator::simulation {

std::optional<std::int64_t> slot_of(SampleChoice choice, std::int64_t capacity, std::uint64_t key,
                                    std::int64_t number) {
  if (choice == SampleChoice::ring) return number % capacity;
  if (number < capacity) return number;
  const auto chosen = core::mix(key, static_cast<std::uint64_t>(number)) % static_cast<std::uint64_t>(number + 1);
  if (chosen >= static_cast<std::uint64_t>(capacity)) return {};
  return static_cast<std::int64_t>(chosen);
}

// Floyd's algorithm draws a set with one number each, however small it is compared to `held`; then it is shuffled.
std::vector<std::int64_t> draw_samples(std::int64_t count, std::int64_t held, std::uint64_t key) {
  std::vector<std::int64_t> drawn;
  std::unordered_set<std::int64_t> taken;
  std::uint64_t state = key;
  const auto below = [&](std::int64_t limit) {
    state = core::mix(state, 1);
    return static_cast<std::int64_t>(state % static_cast<std::uint64_t>(limit));
  };
  for (auto last = held - count; last < held; ++last) {
    const auto candidate = below(last + 1);
    drawn.push_back(taken.insert(candidate).second ? candidate : last);
    taken.insert(drawn.back());
  }
  for (auto i = count - 1; i > 0; --i)
    std::swap(drawn[static_cast<std::size_t>(i)], drawn[static_cast<std::size_t>(below(i + 1))]);
  return drawn;
}

std::vector<SampleOrigin> redistribute(const std::vector<std::int64_t>& counts, int world, int rank,
                                       std::int64_t capacity, bool newest) {
  std::vector<SampleOrigin> mine;
  std::int64_t number = 0;
  for (std::size_t from = 0; from < counts.size(); ++from) {
    for (std::int64_t row = 0; row < counts[from]; ++row, ++number) {
      if (number % world == rank) mine.push_back({static_cast<int>(from), row});
    }
  }
  const auto found = static_cast<std::int64_t>(mine.size());
  if (found <= capacity) return mine;
  if (newest) {
    const auto age = [&](const SampleOrigin& one) { return counts[static_cast<std::size_t>(one.rank)] - one.row; };
    std::ranges::stable_sort(mine, {}, age);
    mine.resize(static_cast<std::size_t>(capacity));
    std::ranges::sort(mine, {}, [](const SampleOrigin& one) { return std::pair(one.rank, one.row); });
    return mine;
  }
  std::vector<SampleOrigin> selected;
  for (std::int64_t i = 0; i < capacity; ++i) selected.push_back(mine[static_cast<std::size_t>(i * found / capacity)]);
  return selected;
}

std::int64_t slot_of_age(std::int64_t number, std::int64_t seen, std::int64_t held) {
  return seen > held ? (seen + number) % held : number;
}

}  // namespace hortator::simulation

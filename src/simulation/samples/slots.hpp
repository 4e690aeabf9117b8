#pragma once

#include <cstdint>
#include <optional>
#include <vector>

/// Which samples a buffer keeps and draws: pure functions of counters, so that a checkpoint holds only the counters.
namespace hortator::simulation {

/// Which samples stay when a buffer is full.
enum class SampleChoice {
  ring,       ///< the newest
  reservoir,  ///< each sample so far with the same probability
  priority,   ///< each sample so far with a probability that grows with its priority: PriorityKeys
};

/// The slot of sample number `number` (from 0) of a ring or reservoir; nothing if it is not kept. `key` decides the
/// reservoir's draws.
std::optional<std::int64_t> slot_of(SampleChoice choice, std::int64_t capacity, std::uint64_t key, std::int64_t number);

/// `count` different numbers below `held`, in random order that depends on `key` only. `count` is at most `held`.
std::vector<std::int64_t> draw_samples(std::int64_t count, std::int64_t held, std::uint64_t key);

/// A sample in the parts that another number of ranks has saved.
struct SampleOrigin {
  int rank = 0;
  std::int64_t row = 0;

  bool operator==(const SampleOrigin&) const = default;
};

/// The samples that rank `rank` of `world` takes over from ranks that held `counts`: all ranks together take each at
/// most once, in equal parts; beyond `capacity` an even selection or, of rows in the order of their age, the newest.
std::vector<SampleOrigin> redistribute(const std::vector<std::int64_t>& counts, int world, int rank,
                                       std::int64_t capacity, bool newest = false);

/// The slot of the sample that came `number` samples after the oldest of a ring that holds `held` of `seen` samples.
std::int64_t slot_of_age(std::int64_t number, std::int64_t seen, std::int64_t held);

}  // namespace hortator::simulation

#include "planning/choice.hpp"

#include <algorithm>

namespace hortator::planning {
namespace {

// Between two that are equally fast, the one that needs less memory.
bool is_better(const Costed& a, const Costed& b, std::uint64_t memory) {
  const bool a_fits = a.fits(memory);
  if (a_fits != b.fits(memory)) return a_fits;
  if (!a_fits) return a.memory.total() < b.memory.total();
  if (a.throughput != b.throughput) return a.throughput > b.throughput;
  return a.memory.total() < b.memory.total();
}

}  // namespace

std::vector<Costed> ranked(const ModelFacts& facts, const Choices& choices, const Machine& machine) {
  std::vector<Costed> all;
  for (const auto& candidate : candidates(choices)) {
    Costed one{.candidate = candidate, .memory = memory_cost(facts, candidate), .time = {}};
    one.time = time_cost(predicted_work(facts, candidate), candidate, machine, facts.is_16bit);
    one.throughput = throughput(facts, candidate, one.time);
    all.push_back(one);
  }
  std::ranges::stable_sort(all, [&](const Costed& a, const Costed& b) { return is_better(a, b, machine.memory); });
  return all;
}

}  // namespace hortator::planning

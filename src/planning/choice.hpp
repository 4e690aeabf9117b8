#pragma once

#include <cstdint>
#include <vector>

#include "planning/cost.hpp"

namespace hortator::planning {

/// A candidate with its costs.
struct Costed {
  Candidate candidate;
  MemoryCost memory;
  TimeCost time;
  double throughput = 0;

  bool fits(std::uint64_t bytes) const { return memory.total() <= static_cast<double>(bytes); }
};

/// All candidates with what the facts predict, those that fit first, the fastest first; those that do not fit follow,
/// the smallest first. Pure.
std::vector<Costed> ranked(const ModelFacts& facts, const Choices& choices, const Machine& machine);

}  // namespace hortator::planning

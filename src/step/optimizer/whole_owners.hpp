#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hortator::step {

/// The rank that computes on each tensor as a whole: the most expensive ones first, each to the rank that has the least
/// to do. Pure.
std::vector<int> whole_owners(std::span<const double> costs, int ranks);

}  // namespace hortator::step

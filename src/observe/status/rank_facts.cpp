#include "observe/status/rank_facts.hpp"

#include <algorithm>
#include <iterator>

namespace hortator::observe {
namespace {

constexpr double overdue_rows = 10;

}  // namespace

bool is_silent(const RankStatus& rank, double now) {
  return !rank.is_over && now - rank.time > std::max(overdue_rows * rank.every, 10.0);
}

std::vector<RankStatus> slowest(const std::vector<RankStatus>& ranks) {
  constexpr double min_difference = 0.15;
  if (ranks.size() < 2) return {};
  std::vector<double> shares;
  for (const auto& rank : ranks) shares.push_back(rank.communication);
  std::sort(shares.begin(), shares.end());
  const double median = shares[shares.size() / 2];
  std::vector<RankStatus> slow;
  std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(slow),
               [&](const RankStatus& rank) { return rank.communication < median - min_difference; });
  std::sort(slow.begin(), slow.end(),
            [](const RankStatus& a, const RankStatus& b) { return a.communication < b.communication; });
  return slow;
}

RunEnergy energy_of(const std::vector<RankStatus>& ranks) {
  RunEnergy energy;
  for (const auto& rank : ranks) {
    energy.joules += rank.joules;
    energy.samples = std::max(energy.samples, rank.samples);
    if (energy.source.empty()) energy.source = rank.energy_source;
  }
  return energy;
}

}  // namespace hortator::observe

#include "step/optimizer/whole_owners.hpp"

#include <algorithm>
#include <numeric>

namespace hortator::step {

std::vector<int> whole_owners(std::span<const double> costs, int ranks) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return costs[i]; });
  std::vector<double> loads(static_cast<std::size_t>(ranks), 0.0);
  std::vector<int> owners(costs.size(), 0);
  for (const auto i : order) {
    const auto least = std::ranges::min_element(loads);
    *least += costs[i];
    owners[i] = static_cast<int>(least - loads.begin());
  }
  return owners;
}

}  // namespace hortator::step

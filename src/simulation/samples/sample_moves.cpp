#include "simulation/samples/sample_moves.hpp"

namespace hortator::simulation {

std::vector<std::int64_t> moving_rows(std::int64_t before, std::int64_t count, std::int64_t receivers,
                                      std::int64_t receiver) {
  std::vector<std::int64_t> rows;
  const auto first = (receiver - before % receivers + receivers) % receivers;
  for (auto row = first; row < count; row += receivers) rows.push_back(row);
  return rows;
}

}  // namespace hortator::simulation

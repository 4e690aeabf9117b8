// Which layers each stage runs.
#include "parallel/pipeline/stage_cut.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <random>

#include "support/catch.hpp"

using namespace hortator;
using Catch::Matchers::ContainsSubstring;
using core::Range;

namespace {

double max_cost(const parallel::LayerCosts& costs, const std::vector<Range>& ranges) {
  double highest = 0;
  for (std::size_t stage = 0; stage < ranges.size(); ++stage) {
    double cost = (stage == 0 ? costs.before : 0) + (stage + 1 == ranges.size() ? costs.after : 0);
    for (auto i = ranges[stage].begin; i < ranges[stage].end; ++i) cost += costs.layers[static_cast<std::size_t>(i)];
    highest = std::max(highest, cost);
  }
  return highest;
}

/// The least that the most expensive stage can cost, by trying every cut.
double best_of_all(const parallel::LayerCosts& costs, int stages, std::vector<Range> so_far = {}) {
  const auto layers = static_cast<std::int64_t>(costs.layers.size());
  const auto begin = so_far.empty() ? 0 : so_far.back().end;
  if (static_cast<int>(so_far.size()) + 1 == stages) {
    so_far.push_back({begin, layers});
    return max_cost(costs, so_far);
  }
  double best = 1e300;
  const auto left = stages - static_cast<int>(so_far.size()) - 1;
  for (auto end = begin + 1; end + left <= layers; ++end) {
    auto next = so_far;
    next.push_back({begin, end});
    best = std::min(best, best_of_all(costs, stages, next));
  }
  return best;
}

}  // namespace

TEST_CASE("layers are cut so that the most expensive stage costs least") {
  std::mt19937 random(3);
  const auto number = [&](int most) { return static_cast<double>(std::uniform_int_distribution(0, most)(random)); };
  for (int i = 0; i < 500; ++i) {
    parallel::LayerCosts costs{.before = number(5), .after = number(9)};
    const auto layers = 1 + static_cast<int>(number(7));
    for (int layer = 0; layer < layers; ++layer) costs.layers.push_back(number(9));
    for (int stages = 1; stages <= layers; ++stages) {
      const auto ranges = parallel::cut_layers(costs, stages);
      REQUIRE(ranges.size() == static_cast<std::size_t>(stages));
      std::int64_t next = 0;
      for (const auto& range : ranges) {
        CHECK(range.begin == next);
        CHECK(range.size() >= 1);
        next = range.end;
      }
      CHECK(next == layers);
      CHECK(max_cost(costs, ranges) == best_of_all(costs, stages));
    }
  }
}

TEST_CASE("equal layers are spread evenly, and a large head takes the place of layers") {
  const auto is_cut = [](const parallel::LayerCosts& costs, const std::vector<Range>& expected) {
    return parallel::cut_layers(costs, static_cast<int>(expected.size())) == expected;
  };
  CHECK(is_cut({.layers = std::vector<double>(8, 1)}, {{0, 2}, {2, 4}, {4, 6}, {6, 8}}));
  CHECK(is_cut({.layers = std::vector<double>(6, 1), .after = 2}, {{0, 4}, {4, 6}}));
}

TEST_CASE("fewer layers than stages are an error") {
  CHECK_THROWS_WITH(parallel::cut_layers({.layers = {1, 1}}, 3),
                    ContainsSubstring("A model of 2 layers was to be cut into 3 stages"));
}

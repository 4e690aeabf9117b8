#include "step/schedule/metric_agreement.hpp"

#include <cmath>
#include <hortator/error.hpp>
#include <limits>
#include <vector>

#include "support/catch.hpp"

using namespace hortator;

namespace {

double agreed(const std::vector<double>& by_rank) { return step::agreed_metric(by_rank); }

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("ranks with the same metric agree on rank 0's, even if it is NaN") {
  CHECK(agreed({0.5}) == 0.5);
  CHECK(agreed({0.5, 0.5, 0.5}) == 0.5);
  CHECK(agreed({0.5, 0.5 + 1e-9}) == 0.5);
  CHECK(agreed({-infinite, -infinite}) == -infinite);
  CHECK(std::isnan(agreed({not_a_number, not_a_number})));
  CHECK(agreed({0, 0}) == 0);
}

TEST_CASE("ranks with other metrics are named") {
  CHECK_THROWS_WITH(agreed({0.5, 0.5, 0.75}), ContainsSubstring("is 0.5 on rank 0, but 0.75 on rank 2 ("));
  CHECK_THROWS_WITH(agreed({0.5, 0.50001}), ContainsSubstring("on rank 1"));
  CHECK_THROWS_WITH(agreed({0.5, not_a_number}), ContainsSubstring("nan on rank 1"));
  CHECK_THROWS_WITH(agreed({infinite, 1e300}), ContainsSubstring("is inf on rank 0"));
  CHECK_THROWS_WITH(agreed({infinite, -infinite}), ContainsSubstring("-inf on rank 1"));
  CHECK_THROWS_WITH(agreed({0, 1e-300}), ContainsSubstring("on rank 1"));
  CHECK_THROWS_WITH(agreed({0, 1, 2, 3, 4, 5}),
                    ContainsSubstring("1 on rank 1, 2 on rank 2, 3 on rank 3, 4 on rank 4, ..."));
  try {
    agreed({1, 1, 2});
  } catch (const UsageError& error) {
    CHECK(error.rank() == 2);
  }
}

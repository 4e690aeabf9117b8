#include "step/precision/loss_scale.hpp"

#include <cmath>
#include <hortator/error.hpp>
#include <limits>

#include "support/catch.hpp"

using namespace hortator;
using step::next_scale;

TEST_CASE("the scale falls on overflow, and rises after growth_interval steps without") {
  const GradScalerOptions options{.growth_factor = 4, .backoff_factor = 0.25, .growth_interval = 2};
  LossScale scale{.scale = 8};
  scale = next_scale(scale, false, options);
  CHECK(scale == LossScale{.scale = 8, .growth_tracker = 1});
  CHECK(next_scale(scale, true, options) == LossScale{.scale = 2, .growth_tracker = 0});
  scale = next_scale(scale, false, options);
  CHECK(scale == LossScale{.scale = 32, .growth_tracker = 0});
}

TEST_CASE("a scale does not grow to infinity, and its count restarts") {
  const GradScalerOptions options{.growth_interval = 1};
  CHECK(next_scale({.scale = 3e38F}, false, options) == LossScale{.scale = 3e38F, .growth_tracker = 0});
}

TEST_CASE("products are rounded once, from double to float") {
  // In float, the factor would be rounded first.
  const GradScalerOptions options{.growth_factor = 1.1, .growth_interval = 1};
  const float exact = static_cast<float>(9.0 * 1.1);
  float at = 9;
  for (int i = 0; i < 40 && at * 1.1F == static_cast<float>(at * 1.1); ++i) at += 1;
  CHECK(at * 1.1F != static_cast<float>(at * 1.1));
  CHECK(next_scale({.scale = 9}, false, options).scale == exact);
  CHECK(next_scale({.scale = at}, false, options).scale == static_cast<float>(at * 1.1));
}

TEST_CASE("scaler options out of range throw with their name") {
  CHECK_NOTHROW(step::check(GradScalerOptions{}));
  CHECK_THROWS_WITH(step::check({.init_scale = 0}), ContainsSubstring("grad_scaler.init_scale is 0"));
  CHECK_THROWS_WITH(step::check({.init_scale = 1e39}), ContainsSubstring("grad_scaler.init_scale"));
  CHECK_THROWS_WITH(step::check({.growth_factor = 1}), ContainsSubstring("grad_scaler.growth_factor is 1"));
  CHECK_THROWS_WITH(step::check({.growth_factor = NAN}), ContainsSubstring("grad_scaler.growth_factor"));
  CHECK_THROWS_WITH(step::check({.backoff_factor = 1}), ContainsSubstring("grad_scaler.backoff_factor is 1"));
  CHECK_THROWS_WITH(step::check({.backoff_factor = 0}), ContainsSubstring("grad_scaler.backoff_factor is 0"));
  CHECK_THROWS_WITH(step::check({.growth_interval = 0}), ContainsSubstring("grad_scaler.growth_interval is 0"));
}

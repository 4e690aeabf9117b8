#include "step/gradients/loss_check.hpp"

#include <ATen/ops/full.h>

#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"

using hortator::step::LossCheck;

TEST_CASE("a loss that is not finite is reported once, with the number of its pass") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), infinity, -infinity}) {
    std::vector<std::string> warnings;
    LossCheck check([&](std::string_view line) { warnings.emplace_back(line); });
    for (const auto type : {at::kFloat, at::kBFloat16}) check.check(at::full({}, 3e4, type));
    CHECK(warnings.empty());
    check.check(at::full({1}, bad, at::kHalf));
    check.check(at::full({}, bad));
    REQUIRE(warnings.size() == 1);
    CHECK_THAT(warnings[0], StartsWith("the loss of backward pass 3 is not a finite number"));
  }
}

TEST_CASE("a tensor that is not a loss is left to backward's own error") {
  LossCheck check([](std::string_view) { FAIL("nothing to warn of"); });
  check.check(at::Tensor());
  check.check(at::full({2}, std::numeric_limits<double>::quiet_NaN()));
  check.check(at::full({}, 1, at::kLong));
}

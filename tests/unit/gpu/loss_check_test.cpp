#include "step/gradients/loss_check.hpp"

#include <limits>

#include "support/catch.hpp"
#include "support/gpu.hpp"

using hortator::step::LossCheck;

TEST_CASE("a loss on the device that is not finite is reported with its pass") {
  if (!hortator::test::has_gpu()) return;
  for (const auto type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    std::vector<std::string> warnings;
    LossCheck check([&](std::string_view line) { warnings.emplace_back(line); });
    const auto loss = [&](double value) {
      return at::full({1}, value, at::TensorOptions(hortator::test::accelerator_type).dtype(type));
    };
    for (int i = 0; i < 300; ++i) check.check(loss(1e3));
    at::zeros({}, hortator::test::accelerator_type).item<float>();  // now all losses have arrived
    check.check(loss(std::numeric_limits<double>::infinity()));
    for (int i = 0; i < 10; ++i) {
      at::zeros({}, hortator::test::accelerator_type).item<float>();
      check.check(loss(std::numeric_limits<double>::quiet_NaN()));
    }
    REQUIRE(warnings.size() == 1);
    CHECK_THAT(warnings[0], StartsWith("the loss of backward pass 301 is not a finite number"));
  }
}

// The warning about a loss that is not a number, through the public API.
#include <limits>

#include "support/catch.hpp"
#include "support/written.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

TEST_CASE("a loss that is not a number warns once on the rank that has it, and names the step") {
  Accelerator accelerator;
  torch::nn::Linear net(3, 1);
  auto model = accelerator.prepare(net);
  test::Written lines(STDERR_FILENO);
  for (int step = 1; step <= 5; ++step) {
    const bool is_bad = step >= 3 && accelerator.is_last_process();
    accelerator.backward(model(at::full({1, 3}, is_bad ? std::numeric_limits<double>::quiet_NaN() : 1)).sum());
  }
  const auto text = lines.text();
  const auto message = std::string("the loss of backward pass 3 is not a finite number");
  CHECK((text.find(message) != std::string::npos) == accelerator.is_last_process());
  CHECK(text.find("finite", text.find("finite") + 1) == std::string::npos);
}

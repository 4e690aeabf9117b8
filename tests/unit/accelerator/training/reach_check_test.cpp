// Losses that reach no prepared model, through the public API.
#include <cstdlib>

#include "support/catch.hpp"
#include "support/written.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

namespace {

at::Tensor loss_of(test::Net& net) { return net->forward(at::ones({2, 3})).sum(); }

}  // namespace

TEST_CASE("a loss that reaches no prepared model warns once, on the main process") {
  Accelerator accelerator;
  test::Net prepared;
  test::Net forgotten;
  auto model = accelerator.prepare(prepared);
  test::Written lines(STDERR_FILENO);
  for (int step = 0; step < 3; ++step) accelerator.backward(loss_of(forgotten));
  const auto text = lines.text();
  const auto first = text.find("backward() got a loss that reaches no prepared model");
  CHECK((first != std::string::npos) == accelerator.is_main_process());
  if (first != std::string::npos) CHECK(text.find("backward() got a loss", first + 1) == std::string::npos);
}

TEST_CASE("a loss that reaches a prepared model, also one whose gradients stay on their rank, gives no warning") {
  for (const bool stays : {false, true}) {
    Accelerator accelerator;
    test::Net net;
    auto model = accelerator.prepare(net);
    test::Written lines(STDERR_FILENO);
    std::optional<NoSync> no_sync;
    if (stays) no_sync.emplace(accelerator.no_sync(model));
    accelerator.backward(loss_of(net));
    CHECK(lines.text().find("reaches no prepared model") == std::string::npos);
  }
}

TEST_CASE("in debug mode a loss that reaches no prepared model is an error, in any step") {
  setenv("HORTATOR_DEBUG", "1", 1);
  {
    Accelerator accelerator;
    test::Net prepared;
    test::Net forgotten;
    auto model = accelerator.prepare(prepared);
    CHECK_NOTHROW(accelerator.backward(loss_of(prepared)));
    CHECK_THROWS_WITH(accelerator.backward(loss_of(forgotten)), ContainsSubstring("reaches no prepared model"));
  }
  unsetenv("HORTATOR_DEBUG");
}

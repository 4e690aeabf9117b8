#include "parallel/data_parallel/gradient_hook.hpp"

#include <hortator/error.hpp>
#include <optional>

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("a hook is called once a backward, with the gradient set, until it is destroyed") {
  auto parameter = at::ones({2}).requires_grad_();
  int calls = 0;
  double seen = 0;
  std::optional<parallel::GradientHook> hook;
  hook.emplace(parameter, [&] {
    ++calls;
    seen = parameter.grad()[0].item<double>();
  });
  (parameter * 2 + parameter * 3).sum().backward();
  CHECK(calls == 1);
  CHECK(seen == 5);
  hook.reset();
  (parameter * 2).sum().backward();
  CHECK(calls == 1);
}

TEST_CASE("successive hooks on the same parameter do not accumulate") {
  auto parameter = at::ones({2}).requires_grad_();
  int first = 0;
  int second = 0;
  {
    const parallel::GradientHook hook(parameter, [&] { ++first; });
    parameter.sum().backward();
  }
  const parallel::GradientHook hook(parameter, [&] { ++second; });
  parameter.sum().backward();
  CHECK(first == 1);
  CHECK(second == 1);
}

TEST_CASE("a frozen parameter can be hooked; a second GradientHook is refused, and the first one stays") {
  auto parameter = at::ones({2});
  int calls = 0;
  const parallel::GradientHook hook(parameter, [&] { ++calls; });
  parameter.requires_grad_();
  parameter.sum().backward();
  CHECK(calls == 1);
  CHECK_THROWS_WITH(parallel::GradientHook(parameter, [] {}), ContainsSubstring("another Accelerator has prepared"));
  parameter.sum().backward();
  CHECK(calls == 2);
}

// Hooks of models that come and go.
#include "../accelerator/fixtures.hpp"
#include "step/model/model_hooks.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("a hook's handle outlives free_memory() and does nothing; a model that is prepared again has no hooks") {
  Accelerator accelerator;
  test::Net net;
  int calls = 0;
  auto model = accelerator.prepare(net);
  auto handle = model.add_hook({.before_forward = [&](torch::nn::Module&) { ++calls; }});
  model(at::ones({1, 3}));
  CHECK(calls == 1);
  accelerator.free_memory();
  auto again = accelerator.prepare(net);
  again(at::ones({1, 3}));
  CHECK(calls == 1);
  auto other = again.add_hook({.before_forward = [&](torch::nn::Module&) { calls += 10; }});
  handle.remove();
  again(at::ones({1, 3}));
  CHECK(calls == 11);
}

// A recorded step compares it before each replay, which calls no hook.
TEST_CASE("each hook that is added or removed changes what a recorded step relies on") {
  step::ModelHooks hooks;
  const auto none = hooks.counts();
  auto first = hooks.add({.before_forward = [](torch::nn::Module&) {}});
  const auto one = hooks.counts();
  CHECK_FALSE(one == none);
  CHECK(hooks.counts() == one);
  first.remove();
  const auto removed = hooks.counts();
  CHECK_FALSE(removed == one);
  hooks.add({.after_forward = [](torch::nn::Module&, std::vector<at::Tensor>&) {}});
  CHECK_FALSE(hooks.counts() == one);
  CHECK_FALSE(hooks.counts() == removed);
}

// Updates that protection leaves out, with what else looks at their gradients or drops them.
#include <limits>
#include <stdexcept>

#include "forgetful_optimizer.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;
using test::are_equal;
using test::copies_of;

namespace {

enum class Fault { none, infinite_gradient, bad_loss };

struct ProtectedRun {
  ProtectedRun(int stage, OnNonfinite on_nonfinite)
      : accelerator({.protection = {.on_nonfinite = on_nonfinite}, .zero = {.stage = stage}}) {}

  Accelerator accelerator;
  test::Shardable net;
  std::unique_ptr<torch::optim::Optimizer> plain = test::make_adamw(net);
  Model<test::Shardable> model = accelerator.prepare(net);
  Optimizer optimizer = accelerator.prepare(*plain);

  void backward(int step, Fault fault) {
    const bool is_spoiler = accelerator.is_last_process();
    const auto result = model(test::batch(accelerator, step));
    if (is_spoiler && fault == Fault::infinite_gradient) {
      result.register_hook(
          [](const at::Tensor& g) { return at::full_like(g, std::numeric_limits<double>::infinity()); });
    }
    auto loss = result.square().mean();
    if (is_spoiler && fault == Fault::bad_loss) loss = loss * std::numeric_limits<double>::quiet_NaN();
    accelerator.backward(loss);
  }
  void update(int step, Fault fault = Fault::none) {
    backward(step, fault);
    accelerator.clip_grad_value_(test::distinct(*net), 0.01);
    optimizer.step();
    optimizer.zero_grad();
  }
  std::vector<at::Tensor> weights() {
    const auto whole = accelerator.summon_full_parameters(model);
    return copies_of(*net);
  }
};

}  // namespace

TEST_CASE("an infinite gradient that clip_grad_value_ makes finite is still left out on all ranks") {
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    ProtectedRun expected(stage, OnNonfinite::skip);
    ProtectedRun run(stage, OnNonfinite::skip);
    for (const int step : {0, 2, 3}) expected.update(step);
    run.update(0);
    run.update(1, Fault::infinite_gradient);
    CHECK(run.optimizer.step_was_skipped());
    run.update(2);
    CHECK_FALSE(run.optimizer.step_was_skipped());
    run.update(3);
    CHECK(are_equal(run.weights(), expected.weights()));
    run.accelerator.wait_for_everyone();
  }
}

TEST_CASE("of two optimizers, both leave out an update whose gradients were clamped, whichever steps first") {
  for (const bool spoiled_first : {true, false}) {
    Accelerator accelerator({.protection = {.on_nonfinite = OnNonfinite::skip}});
    torch::nn::Linear a(2, 1);
    torch::nn::Linear b(2, 1);
    torch::optim::SGD sgd_a(a->parameters(), 0.1);
    torch::optim::SGD sgd_b(b->parameters(), 0.1);
    auto [first, second, optimizer_a, optimizer_b] = accelerator.prepare(a, b, sgd_a, sgd_b);
    const auto before = copies_of(*a);
    const auto result = first(at::ones({1, 2}));
    result.register_hook([](const at::Tensor& g) { return at::full_like(g, std::numeric_limits<double>::infinity()); });
    accelerator.backward(result.sum() + second(at::ones({1, 2})).sum());
    for (const auto& net : {a, b}) accelerator.clip_grad_value_(net->parameters(), 1);
    (spoiled_first ? optimizer_a : optimizer_b).step();
    (spoiled_first ? optimizer_b : optimizer_a).step();
    CHECK(optimizer_a.step_was_skipped());
    CHECK(optimizer_b.step_was_skipped());
    CHECK(are_equal(copies_of(*a), before));
    accelerator.wait_for_everyone();
  }
}

TEST_CASE("a bad loss whose gradients are cleared does not spoil the next update") {
  for (const auto on_nonfinite : {OnNonfinite::skip, OnNonfinite::stop, OnNonfinite::rollback}) {
    ProtectedRun expected(0, on_nonfinite);
    ProtectedRun run(0, on_nonfinite);
    expected.update(0);
    expected.update(2);
    run.update(0);
    try {
      run.backward(1, Fault::bad_loss);
      throw std::runtime_error("planted");
    } catch (const std::runtime_error&) {
      run.optimizer.zero_grad();
    }
    CHECK_NOTHROW(run.update(2));
    CHECK_FALSE(run.optimizer.step_was_skipped());
    CHECK(are_equal(run.weights(), expected.weights()));
    run.accelerator.wait_for_everyone();
  }
}

TEST_CASE("a bad loss counts as long as some optimizer has its gradients") {
  Accelerator accelerator({.protection = {.on_nonfinite = OnNonfinite::skip, .loss_spike_factor = 10}});
  torch::nn::Linear a(2, 1);
  torch::nn::Linear b(2, 1);
  torch::optim::SGD sgd_a(a->parameters(), 0.01);
  torch::optim::SGD sgd_b(b->parameters(), 0.01);
  auto [first, second, optimizer_a, optimizer_b] = accelerator.prepare(a, b, sgd_a, sgd_b);
  const auto pass = [&, &first = first, &second = second](double factor) {
    accelerator.backward((first(at::ones({1, 2})) + second(at::ones({1, 2}))).square().sum() * 0 + factor);
  };
  for (int step = 0; step < 30; ++step) {
    pass(1);
    optimizer_a.step();
    optimizer_b.step();
    optimizer_a.zero_grad();
    optimizer_b.zero_grad();
  }
  pass(1000);
  optimizer_b.zero_grad();  // this pass is for the first one only
  optimizer_a.step();
  CHECK(optimizer_a.step_was_skipped());
  accelerator.wait_for_everyone();
}

TEST_CASE("a rollback is refused with an optimizer that saves nothing, which it could not bring back") {
  Accelerator accelerator({.protection = {.on_nonfinite = OnNonfinite::rollback}});
  torch::nn::Linear net(2, 1);
  test::Forgetful forgetful(net->parameters());
  CHECK_THROWS_WITH(accelerator.prepare(forgetful),
                    ContainsSubstring("protection.on_nonfinite is rollback, and prepare() got an optimizer of type") &&
                        ContainsSubstring("which saves nothing"));
}

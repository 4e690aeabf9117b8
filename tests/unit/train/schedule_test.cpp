#include <torch/optim/sgd.h>

#include <hortator/schedule.hpp>

#include "support/catch.hpp"
#include "train/schedule_core.hpp"

using namespace hortator;

namespace {

torch::optim::SGD make_optimizer(double lr) { return torch::optim::SGD({at::ones({2}).requires_grad_()}, lr); }
double rate(const torch::optim::Optimizer& optimizer) { return optimizer.param_groups().front().options().get_lr(); }

}  // namespace

TEST_CASE("linear warm-up rises in a line and falls to zero") {
  auto optimizer = make_optimizer(2.0);
  auto schedule = linear_warmup(optimizer, {.warmup_steps = 4, .total_steps = 12});
  const std::vector<double> expected = {0, 0.5, 1.0, 1.5, 2.0, 1.75, 1.5, 1.25, 1.0, 0.75, 0.5, 0.25, 0, 0};
  for (const double lr : expected) {
    CHECK(rate(optimizer) == Approx(lr));
    CHECK(schedule.last_lr() == Approx(lr));
    schedule.step();
  }
}

TEST_CASE("cosine warm-up is at the middle half way and ends at its floor") {
  auto optimizer = make_optimizer(1.0);
  auto schedule = cosine_warmup(optimizer, {.warmup_steps = 2, .total_steps = 10, .floor = 0.1});
  CHECK(rate(optimizer) == 0);
  for (int i = 0; i < 2; ++i) schedule.step();
  CHECK(rate(optimizer) == Approx(1.0));
  for (int i = 0; i < 4; ++i) schedule.step();
  CHECK(rate(optimizer) == Approx(0.55));
  for (int i = 0; i < 20; ++i) schedule.step();
  CHECK(rate(optimizer) == Approx(0.1));
}

TEST_CASE("every parameter group keeps its own base rate") {
  torch::optim::SGD optimizer({at::ones({1}).requires_grad_()}, 1.0);
  optimizer.add_param_group(torch::optim::OptimizerParamGroup({at::ones({1}).requires_grad_()},
                                                              std::make_unique<torch::optim::SGDOptions>(10.0)));
  Schedule schedule(optimizer, [](std::int64_t step) { return 1.0 / static_cast<double>(step + 1); });
  schedule.step();
  CHECK(optimizer.param_groups()[0].options().get_lr() == Approx(0.5));
  CHECK(optimizer.param_groups()[1].options().get_lr() == Approx(5.0));
}

TEST_CASE("a loaded schedule goes on where it stopped, on a fresh optimizer") {
  auto optimizer = make_optimizer(0.4);
  auto schedule = linear_warmup(optimizer, {.warmup_steps = 10, .total_steps = 20});
  for (int i = 0; i < 7; ++i) schedule.step();
  auto other_optimizer = make_optimizer(0.1);
  auto other = linear_warmup(other_optimizer, {.warmup_steps = 10, .total_steps = 20});
  other.load(schedule.state());
  CHECK(other.steps() == 7);
  CHECK(rate(other_optimizer) == rate(optimizer));
}

TEST_CASE("attached: it advances several steps a call and throws once the session has ended") {
  auto optimizer = make_optimizer(1.0);
  auto schedule = linear_warmup(optimizer, {.warmup_steps = 10, .total_steps = 20});
  const auto session = std::make_shared<train::Session>();
  schedule.core().attach(session, 3);
  schedule.step();
  CHECK(schedule.steps() == 3);
  session->end();
  CHECK_THROWS_WITH(schedule.step(), ContainsSubstring("a prepared schedule was used after its Accelerator had gone"));
}

TEST_CASE("impossible numbers of steps are refused by name") {
  auto optimizer = make_optimizer(1.0);
  CHECK_THROWS_WITH(linear_warmup(optimizer, {.warmup_steps = 5, .total_steps = 4}),
                    ContainsSubstring("warmup_steps = 5"));
  CHECK_THROWS_WITH(linear_warmup(optimizer, {.warmup_steps = 0, .total_steps = 0}),
                    ContainsSubstring("at least one step"));
  CHECK_THROWS_WITH(cosine_warmup(optimizer, {.warmup_steps = -1, .total_steps = 4}),
                    ContainsSubstring("cosine_warmup"));
}

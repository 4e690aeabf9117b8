#include <torch/optim/adagrad.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <hortator/error.hpp>
#include <hortator/training/reduce_on_plateau.hpp>

#include "step/schedule/course_schedule.hpp"
#include "step/schedule/plateau_schedule.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

torch::optim::SGD make_optimizer(double lr) { return torch::optim::SGD({at::ones({2}).requires_grad_()}, lr); }
double rate(const torch::optim::Optimizer& optimizer) { return optimizer.param_groups().front().options().get_lr(); }

}  // namespace

TEST_CASE("linear warm-up rises linearly and falls to zero") {
  auto optimizer = make_optimizer(2.0);
  auto schedule = linear_warmup(optimizer, {.warmup_steps = 4, .total_steps = 12});
  const std::vector<double> expected = {0, 0.5, 1.0, 1.5, 2.0, 1.75, 1.5, 1.25, 1.0, 0.75, 0.5, 0.25, 0, 0};
  for (const double lr : expected) {
    CHECK(rate(optimizer) == Approx(lr));
    CHECK(schedule.last_lr() == Approx(lr));
    schedule.step();
  }
}

TEST_CASE("cosine warm-up is halfway at half its steps and ends at its floor") {
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

TEST_CASE("every parameter group has its own base rate") {
  torch::optim::SGD optimizer({at::ones({1}).requires_grad_()}, 1.0);
  optimizer.add_param_group(torch::optim::OptimizerParamGroup({at::ones({1}).requires_grad_()},
                                                              std::make_unique<torch::optim::SGDOptions>(10.0)));
  Schedule schedule(optimizer, [](std::int64_t step) { return 1.0 / static_cast<double>(step + 1); });
  schedule.step();
  CHECK(optimizer.param_groups()[0].options().get_lr() == Approx(0.5));
  CHECK(optimizer.param_groups()[1].options().get_lr() == Approx(5.0));
}

TEST_CASE("a loaded schedule resumes on a new optimizer") {
  auto optimizer = make_optimizer(0.4);
  auto schedule = linear_warmup(optimizer, {.warmup_steps = 10, .total_steps = 20});
  for (int i = 0; i < 7; ++i) schedule.step();
  auto other_optimizer = make_optimizer(0.1);
  auto other = linear_warmup(other_optimizer, {.warmup_steps = 10, .total_steps = 20});
  other.load(schedule.state());
  CHECK(other.steps() == 7);
  CHECK(rate(other_optimizer) == rate(optimizer));
}

TEST_CASE("each group may have its own function") {
  torch::optim::SGD optimizer({at::ones({1}).requires_grad_()}, 1.0);
  optimizer.add_param_group(torch::optim::OptimizerParamGroup({at::ones({1}).requires_grad_()},
                                                              std::make_unique<torch::optim::SGDOptions>(10.0)));
  const Schedule::Factor halve = [](std::int64_t step) { return std::pow(0.5, step); };
  const Schedule::Factor keep = [](std::int64_t) { return 1.0; };
  Schedule schedule(optimizer, std::vector{halve, keep});
  schedule.step();
  schedule.step();
  CHECK(optimizer.param_groups()[0].options().get_lr() == 0.25);
  CHECK(optimizer.param_groups()[1].options().get_lr() == 10);
  CHECK_THROWS_WITH(Schedule(optimizer, std::vector{halve, keep, keep}),
                    ContainsSubstring("got 3 functions, but its optimizer has 2 parameter groups"));
}

TEST_CASE("an attached schedule advances by its link, and throws after the session has ended") {
  auto optimizer = make_optimizer(1.0);
  auto schedule = linear_warmup(optimizer, {.warmup_steps = 10, .total_steps = 20});
  const auto session = std::make_shared<step::AcceleratorSession>();
  bool synchronised = true;
  bool skipped = false;
  schedule.core().attach({.session = session,
                          .pace = {.times = 3},
                          .gradients_synchronised = [&] { return synchronised; },
                          .optimizer_was_skipped = [&] { return skipped; }});
  schedule.step();
  CHECK(schedule.steps() == 3);
  CHECK(rate(optimizer) == Approx(0.3));
  synchronised = false;
  schedule.step();
  CHECK(schedule.steps() == 3);
  synchronised = true;
  skipped = true;
  schedule.step();
  CHECK(schedule.steps() == 3);
  skipped = false;
  schedule.step();
  CHECK(schedule.steps() == 6);
  session->end();
  CHECK_THROWS_WITH(schedule.step(),
                    ContainsSubstring("A prepared schedule was used after its Accelerator was destroyed"));
}

TEST_CASE("last_lrs() has the rate of each parameter group") {
  using Group = torch::optim::OptimizerParamGroup;
  std::vector<Group> groups;
  groups.emplace_back(std::vector{at::ones({1}).requires_grad_()}, std::make_unique<torch::optim::SGDOptions>(0.5));
  groups.emplace_back(std::vector{at::ones({1}).requires_grad_()}, std::make_unique<torch::optim::SGDOptions>(0.1));
  torch::optim::SGD optimizer(groups, torch::optim::SGDOptions(1));
  Schedule schedule(optimizer, [](std::int64_t step) { return step == 0 ? 1.0 : 0.5; });
  CHECK(schedule.last_lrs() == std::vector{0.5, 0.1});
  schedule.step();
  CHECK(schedule.last_lrs() == std::vector{0.25, 0.05});
  CHECK(schedule.last_lr() == 0.25);
}

TEST_CASE("one_cycle throws on a step too many; attached it stays at its end") {
  auto optimizer = make_optimizer(1.0);
  const OneCycle options{.max_lr = 1.0, .total_steps = 7, .anneal = Anneal::linear};
  auto detached = one_cycle(optimizer, options);
  for (int i = 0; i < 6; ++i) detached.step();
  CHECK(rate(optimizer) == Approx(4e-6));
  detached.step();
  CHECK(rate(optimizer) == Approx(4e-6));
  CHECK_THROWS_WITH(detached.step(), ContainsSubstring("one_cycle was stepped 8 times, but its total_steps are 7"));
  CHECK(detached.steps() == 7);

  auto attached = one_cycle(optimizer, options);
  attached.core().attach({.session = std::make_shared<step::AcceleratorSession>(),
                          .pace = {.times = 4},
                          .gradients_synchronised = [] { return true; },
                          .optimizer_was_skipped = [] { return false; }});
  for (const std::int64_t steps : {4, 7, 7}) {
    attached.step();
    CHECK(attached.steps() == steps);
  }
  CHECK(rate(optimizer) == Approx(4e-6));
}

TEST_CASE("one_cycle may peak between steps, and rejects impossible options") {
  auto optimizer = make_optimizer(1.0);
  // The rise ends at step 0, where PyTorch divides by zero.
  auto schedule = one_cycle(optimizer, {.max_lr = 1.0, .total_steps = 10, .pct_start = 0.1});
  CHECK(rate(optimizer) == 1.0);
  schedule.step();
  CHECK(rate(optimizer) < 1.0);
  CHECK_THROWS_WITH(one_cycle(optimizer, {.max_lr = 1.0}), ContainsSubstring("total_steps = 0"));
  CHECK_THROWS_WITH(one_cycle(optimizer, {.max_lr = 1.0, .total_steps = 5, .pct_start = 1.5}),
                    ContainsSubstring("pct_start = 1.5"));
  CHECK_THROWS_WITH(one_cycle(optimizer, {.max_lr = {1.0, 2.0}, .total_steps = 5}),
                    ContainsSubstring("max_lr has 2 numbers, but the optimizer has 1 parameter group"));
  torch::optim::Adagrad adagrad({at::ones({2}).requires_grad_()}, 0.1);
  CHECK_THROWS_WITH(one_cycle(adagrad, {.max_lr = 1.0, .total_steps = 5}),
                    ContainsSubstring("set cycle_momentum = false"));
  CHECK_NOTHROW(one_cycle(adagrad, {.max_lr = 1.0, .total_steps = 5, .cycle_momentum = false}));
}

TEST_CASE("a plateau schedule uses the agreed metric, and counts each call once") {
  auto optimizer = make_optimizer(1.0);
  ReduceOnPlateau schedule(optimizer, {.patience = 0});
  const auto session = std::make_shared<step::AcceleratorSession>();
  schedule.core().attach({.session = session,
                          .pace = {.times = 4},
                          .gradients_synchronised = [] { return false; },
                          .optimizer_was_skipped = [] { return true; },
                          .agree_on_metric = [](double metric) { return -metric; }});
  schedule.step(1);
  schedule.step(2);  // -2 is better than -1
  CHECK(schedule.steps() == 2);
  CHECK(rate(optimizer) == 1.0);
  schedule.step(1);
  CHECK(rate(optimizer) == 0.1);
  session->end();
  CHECK_THROWS_WITH(schedule.step(1), ContainsSubstring("after its Accelerator was destroyed"));
  CHECK_THROWS_WITH(ReduceOnPlateau(optimizer, {.factor = 1}), ContainsSubstring("factor = 1"));
  CHECK_THROWS_WITH(ReduceOnPlateau(optimizer, {.min_lr = {0, 0}}), ContainsSubstring("min_lr has 2 numbers"));
}

TEST_CASE("cosine warm-up stays at its floor after its end") {
  auto optimizer = make_optimizer(1.0);
  auto schedule = cosine_warmup(optimizer, {.warmup_steps = 0, .total_steps = 4});
  for (int i = 0; i < 6; ++i) schedule.step();
  CHECK(rate(optimizer) == 0);
}

TEST_CASE("impossible numbers of steps throw with the option's name") {
  auto optimizer = make_optimizer(1.0);
  CHECK_THROWS_WITH(linear_warmup(optimizer, {.warmup_steps = 5, .total_steps = 4}),
                    ContainsSubstring("warmup_steps = 5"));
  CHECK_THROWS_WITH(linear_warmup(optimizer, {.warmup_steps = 0, .total_steps = 0}),
                    ContainsSubstring("at least one step"));
  CHECK_THROWS_WITH(cosine_warmup(optimizer, {.warmup_steps = -1, .total_steps = 4}),
                    ContainsSubstring("cosine_warmup"));
  CHECK_THROWS_WITH(constant_warmup(optimizer, {.warmup_steps = -1}), ContainsSubstring("constant_warmup"));
  CHECK_THROWS_WITH(step_lr(optimizer, {}), ContainsSubstring("step_size is 0"));
  CHECK_THROWS_WITH(cosine_annealing(optimizer, {}), ContainsSubstring("half_period is 0"));
}

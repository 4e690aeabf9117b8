#include <mpi.h>
#include <torch/optim/schedulers/lr_scheduler.h>
#include <torch/optim/schedulers/reduce_on_plateau_scheduler.h>
#include <torch/optim/schedulers/step_lr.h>

#include <deque>

#include "support/catch.hpp"
#include "support/written.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Net;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t times = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

torch::optim::SGD make_sgd(const Net& net) {
  return torch::optim::SGD(net->parameters(), torch::optim::SGDOptions(0.5).momentum(0.9));
}

// A schedule of each kind with its own optimizer, which is not saved: loading the schedule restores its rates.
struct AllSchedules {
  Net net;
  std::deque<torch::optim::SGD> optimizers;
  std::vector<Schedule> schedules = {
      constant_warmup(next(), {.warmup_steps = 30}),
      linear_warmup(next(), {.warmup_steps = 30, .total_steps = 100}),
      cosine_warmup(next(), {.warmup_steps = 30, .total_steps = 100}),
      step_lr(next(), {.step_size = 7, .gamma = 0.9}),
      multi_step_lr(next(), {.milestones = {3, 20}}),
      exponential_lr(next(), {.gamma = 0.97}),
      cosine_annealing(next(), {.half_period = 9}),
      one_cycle(next(), {.max_lr = 2.0, .total_steps = 60}),
      cyclic_lr(next(), {.base_lr = 0.1, .max_lr = 1.0, .step_size_up = 4}),
      sequential_lr(next(), {.parts = {LinearLr{}, CosineWarmRestarts{.first_period = 4}}, .milestones = {5}}),
      chained_lr(next(), {ExponentialLr{}, PolynomialLr{.total_steps = 80}}),
  };
  ReduceOnPlateau plateau{next(), {.factor = 0.5, .patience = 1}};

  torch::optim::SGD& next() { return optimizers.emplace_back(make_sgd(net)); }

  void prepare(Accelerator& accelerator) {
    for (const auto& schedule : schedules) accelerator.prepare(schedule);
    accelerator.prepare(plateau);
  }
  // Steps each schedule once. Returns the rates and momenta that they set.
  std::vector<double> step_all(int round) {
    for (auto& schedule : schedules) schedule.step();
    plateau.step(1.0 + 0.1 * (round % 3));
    std::vector<double> seen;
    for (auto& optimizer : optimizers) {
      const auto& options = static_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[0].options());
      seen.push_back(options.lr());
      seen.push_back(options.momentum());
    }
    return seen;
  }
};

}  // namespace

TEST_CASE("torch's plateau is recognised, so that prepare() can refuse it by name") {
  STATIC_REQUIRE(hortator::detail::is_torch_schedule<torch::optim::StepLR>);
  STATIC_REQUIRE(hortator::detail::is_torch_plateau<torch::optim::ReduceLROnPlateauScheduler>);
  STATIC_REQUIRE_FALSE(hortator::detail::is_torch_schedule<Schedule>);
  STATIC_REQUIRE_FALSE(hortator::detail::is_torch_schedule<torch::optim::SGD>);
}

TEST_CASE("schedulers of torch::optim advance with their optimizer, and resume, as schedules do") {
  // A class of the user's own, whose rate depends on the steps only.
  class Halving final : public torch::optim::LRScheduler {
   public:
    using LRScheduler::LRScheduler;

   private:
    std::vector<double> get_lrs() override {
      return std::vector<double>(get_current_lrs().size(), 0.5 / (1 << step_count_));
    }
  };
  test::Folder folder(State(), "torch_schedules");
  std::vector<std::vector<double>> whole;
  for (const bool resumed : {false, true}) {
    Accelerator accelerator({.gradient_accumulation_steps = 2,
                             .schedule_step = ScheduleStep::per_update,
                             .project = {.dir = folder.path()}});
    Net net;
    auto sgd = make_sgd(net), other = make_sgd(net);
    torch::optim::StepLR decay(sgd, 3, 0.1);
    Halving halving(other);
    // A scheduler may come before its optimizer, which is found among those of the call.
    auto [schedule, model, optimizer, second] = accelerator.prepare(decay, net, sgd, other);
    STATIC_REQUIRE(std::is_same_v<decltype(schedule), TorchSchedule>);
    auto halves = accelerator.prepare(halving);
    CHECK(accelerator.prepare(halving).steps() == halves.steps());  // the same one: it advances once
    if (resumed) accelerator.load_state();
    for (int round = resumed ? 4 : 0; round < 10; ++round) {
      for (int i = 0; i < 2; ++i) {
        const auto micro = accelerator.accumulate(model);
        accelerator.backward(model(at::ones({2, 3})).sum());
        optimizer.step();
        second.step();
        schedule.step();
        halves.step();
        optimizer.zero_grad();
      }
      CHECK(schedule.steps() == round + 1);
      const std::vector<double> seen = {schedule.last_lr(), halves.last_lr()};
      if (resumed) {
        CHECK(seen == whole[static_cast<std::size_t>(round)]);
      } else {
        whole.push_back(seen);
        if (round == 3) accelerator.save_state();
      }
    }
  }
  CHECK(whole[2] == std::vector{0.5, 0.125});
  CHECK(whole[9].at(0) == Approx(5e-4));
}

TEST_CASE("a scheduler of torch::optim advances by the number of ranks by default, and needs its optimizer") {
  Accelerator accelerator;
  Net net;
  auto sgd = make_sgd(net), other = make_sgd(net);
  torch::optim::StepLR decay(sgd, 3, 0.1);
  CHECK_THROWS_WITH(accelerator.prepare(net, other, decay), ContainsSubstring("without its optimizer"));
  CHECK(sgd.param_groups()[0].options().get_lr() == 0.5);
  CHECK(other.param_groups()[0].options().get_lr() == 0.5);
  CHECK_THROWS_WITH(TorchSchedule(decay, other), ContainsSubstring("not its own"));
  auto [optimizer, schedule] = accelerator.prepare(sgd, decay);
  schedule.step();
  CHECK(schedule.steps() == accelerator.num_processes());
}

TEST_CASE("how a schedule advances is printed once, when it is prepared") {
  Net net;
  auto sgd = make_sgd(net);
  auto first = linear_warmup(sgd, {.warmup_steps = 12, .total_steps = 120});
  auto second = step_lr(sgd, {.step_size = 12});
  std::string output;
  int ranks = 1;
  bool is_main = false;
  {
    const test::Written error(STDERR_FILENO);
    Accelerator accelerator;
    ranks = accelerator.num_processes();
    is_main = accelerator.is_main_process();
    accelerator.prepare(net, first);
    accelerator.prepare(first);
    accelerator.prepare(second);
    accelerator.prepare(second, sgd);
    output = error.text();
  }
  INFO(output);
  const auto advance =
      ", each update advances " + std::string(ranks == 1 ? "1 step" : std::to_string(ranks) + " steps");
  const auto after = [&](int steps) { return " after update " + std::to_string(steps / ranks); };
  CHECK(count(output, "linear_warmup" + advance) == (is_main ? 1 : 0));
  CHECK(count(output, "warm-up ends" + after(12) + ", the schedule ends" + after(120)) == (is_main ? 1 : 0));
  CHECK(count(output, "schedule: step_lr" + advance) == (is_main ? 1 : 0));
}

TEST_CASE("a schedule that is not linked to the optimizer advances one step per call on any number of ranks") {
  Accelerator accelerator({.step_scheduler_with_optimizer = false});
  Net net;
  auto sgd = make_sgd(net);
  auto schedule = accelerator.prepare(linear_warmup(sgd, {.warmup_steps = 0, .total_steps = 100}));
  for (int i = 0; i < 3; ++i) schedule.step();
  CHECK(schedule.steps() == 3);
}

TEST_CASE("ReduceOnPlateau requires the same metric on all ranks") {
  Accelerator accelerator;
  Net net;
  auto sgd = make_sgd(net);
  auto schedule = accelerator.prepare(ReduceOnPlateau(sgd, {.patience = 0}));
  STATIC_REQUIRE(std::is_same_v<decltype(schedule), ReduceOnPlateau>);
  schedule.step(1.0);
  schedule.step(1.0);
  CHECK(schedule.steps() == 2);
  CHECK(schedule.last_lr() == Approx(0.05));
  CHECK(schedule.last_lrs() == std::vector{schedule.last_lr()});

  const int ranks = accelerator.num_processes();
  const bool last = accelerator.process_index() == ranks - 1;
  if (ranks == 1) return;
  CHECK_THROWS_WITH(schedule.step(last ? 0.25 : 0.5),
                    ContainsSubstring("The metric is 0.5 on rank 0, but 0.25 on rank " + std::to_string(ranks - 1)));
  CHECK(schedule.steps() == 2);
  CHECK(schedule.last_lr() == Approx(0.05));
}

TEST_CASE("schedules of every kind resume from a checkpoint as if the run had not stopped") {
  test::Folder folder(State(), "schedules");
  std::vector<std::vector<double>> whole;
  for (const bool resumed : {false, true}) {
    Accelerator accelerator({.project = {.dir = folder.path()}});
    AllSchedules all;
    all.prepare(accelerator);
    if (resumed) accelerator.load_state();
    for (int round = resumed ? 4 : 0; round < 9; ++round) {
      const auto seen = all.step_all(round);
      if (resumed) {
        CHECK(seen == whole[static_cast<std::size_t>(round)]);
      } else {
        whole.push_back(seen);
        if (round == 3) accelerator.save_state();
      }
    }
    CHECK(all.schedules.front().steps() == 9 * accelerator.num_processes());
    CHECK(all.plateau.steps() == 9);
  }
}

TEST_CASE("a run resumes on another number of ranks at the same rate: a checkpoint counts steps of the schedule") {
  const State world;
  test::Folder folder(world, "schedule_ranks");
  const auto total = 40L * world.num_processes();
  double rate = 0;
  {
    Accelerator accelerator({.project = {.dir = folder.path()}});
    Net net;
    auto sgd = make_sgd(net);
    auto [model, optimizer, schedule] =
        accelerator.prepare(net, sgd, linear_warmup(sgd, {.warmup_steps = 0, .total_steps = total}));
    for (int i = 0; i < 10; ++i) schedule.step();
    accelerator.save_state();
    rate = schedule.last_lr();
  }
  world.wait_for_everyone();
  {
    Accelerator accelerator({.project = {.dir = folder.path()}, .communicator = MPI_Comm_c2f(MPI_COMM_SELF)});
    Net net;
    auto sgd = make_sgd(net);
    auto [model, optimizer, schedule] =
        accelerator.prepare(net, sgd, linear_warmup(sgd, {.warmup_steps = 0, .total_steps = total}));
    accelerator.load_state();
    CHECK(schedule.last_lr() == rate);
    CHECK(schedule.steps() == 10L * world.num_processes());
    schedule.step();
    CHECK(schedule.steps() == 10L * world.num_processes() + 1);
  }
  world.wait_for_everyone();
}

TEST_CASE("optimizers step by the fused kernel unless their own step is requested") {
  const auto trained = [](bool fused, bool uses_own_step) {
    at::manual_seed(3);
    Net net;
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    Accelerator accelerator({.fused_optimizer = fused});
    auto [model, optimizer] = accelerator.prepare(net, adamw);
    for (int step = 0; step < 5; ++step) {
      accelerator.backward(model(at::ones({2, 3})).pow(2).sum());
      uses_own_step ? void(adamw.step()) : optimizer.step();
      optimizer.zero_grad();
    }
    return net;
  };
  const auto own = trained(false, false);
  const auto fused = trained(true, false);
  CHECK(test::same_parameters(*own, *trained(false, true)));
  CHECK_FALSE(test::same_parameters(*own, *fused));
  for (std::size_t i = 0; i < own->parameters().size(); ++i) {
    CHECK(at::allclose(own->parameters()[i], fused->parameters()[i], 1e-5, 1e-7));
  }
}

#include <cmath>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

constexpr double rate = 0.1;

// One weight w whose loss is c w^2 / 2 with c = rank + 1: a step multiplies it by 1 - rate c.
struct OneWeight {
  OneWeight() {
    const at::NoGradGuard no_grad;
    net->weight.fill_(1);
  }
  torch::nn::Linear net{torch::nn::LinearOptions(1, 1).bias(false)};
  torch::optim::SGD sgd{net->parameters(), rate};
  double weight() const { return net->weight.item<double>(); }
};

double local_steps(double weight, int rank, int count) { return weight * std::pow(1 - rate * (rank + 1), count); }

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

struct Run {
  explicit Run(const LocalSGDOptions& options) : options(options) {}
  LocalSGDOptions options;
  Accelerator accelerator;
  OneWeight one;
  Model<torch::nn::Linear> model = accelerator.prepare(one.net);
  Optimizer optimizer = accelerator.prepare(one.sgd);
  int rank = accelerator.process_index();
  int ranks = accelerator.num_processes();

  void step() {
    const auto loss = model(at::ones({1, 1})).square().sum() * ((rank + 1) / 2.0);
    accelerator.backward(loss);
    optimizer.step();
    optimizer.zero_grad();
  }
  bool is_same_everywhere() {
    const auto all = accelerator.gather(one.net->weight.detach());
    return (all == all[0]).all().item<bool>();
  }
};

}  // namespace

TEST_CASE("parameters are averaged after each group of steps, and at the end") {
  Run run({.steps = 3});
  {
    LocalSGD local_sgd(run.accelerator, run.model, run.options);
    std::vector<double> weights(static_cast<std::size_t>(run.ranks), 1);
    for (int step = 1; step <= 7; ++step) {
      run.step();
      local_sgd.step();
      for (int rank = 0; rank < run.ranks; ++rank) {
        auto& weight = weights[static_cast<std::size_t>(rank)];
        weight = local_steps(weight, rank, 1);
      }
      if (step % 3 == 0) weights.assign(weights.size(), mean(weights));
      CHECK(run.one.weight() == Approx(weights[static_cast<std::size_t>(run.rank)]).epsilon(1e-5));
      CHECK(run.is_same_everywhere() == (run.ranks == 1 || step % 3 == 0));
    }
  }
  CHECK(run.is_same_everywhere());
  run.step();  // synchronised again
  CHECK(run.is_same_everywhere());
}

TEST_CASE("ranks may take different numbers of steps") {
  constexpr int every = 2;
  for (const int slope : {1, 3}) {
    Run run({.steps = every});
    const auto steps_of = [&](int rank) { return 1 + slope * rank; };
    {
      LocalSGD local_sgd(run.accelerator, run.model, run.options);
      for (int step = 0; step < steps_of(run.rank); ++step) {
        run.step();
        local_sgd.step();
      }
    }
    std::vector<double> weights;
    std::vector<int> left;
    for (int rank = 0; rank < run.ranks; ++rank) {
      weights.push_back(1);
      left.push_back(steps_of(rank));
    }
    for (bool all_done = false; !all_done;) {
      all_done = true;
      for (std::size_t rank = 0; rank < weights.size(); ++rank) {
        const int taken = std::min(every, left[rank]);
        weights[rank] = local_steps(weights[rank], static_cast<int>(rank), taken);
        left[rank] -= taken;
        if (taken == every) all_done = false;
      }
      weights.assign(weights.size(), mean(weights));
    }
    CHECK(run.one.weight() == Approx(weights[0]).epsilon(1e-5));
    CHECK(run.is_same_everywhere());
  }
}

TEST_CASE("after different numbers of steps all ranks have the optimizer and schedule of the rank with the most") {
  Run run({.steps = 2});
  const test::Folder folder(run.accelerator, "local_sgd");
  torch::optim::AdamW adam(run.one.net->parameters(), rate);
  auto [optimizer, schedule] = run.accelerator.prepare(
      adam, Schedule(adam, [](std::int64_t step) { return 1.0 / static_cast<double>(step + 1); }));
  const auto step = [&, &optimizer = optimizer, &schedule = schedule] {
    run.accelerator.backward(run.model(at::ones({1, 1})).square().sum());
    optimizer.step();
    schedule.step();
    optimizer.zero_grad();
  };
  {
    LocalSGD local_sgd(run.accelerator, run.model, run.options);
    for (int i = 0; i < 3 + run.ranks - run.rank; ++i) {
      step();
      local_sgd.step();
    }
  }
  CHECK(schedule.steps() == (3L + run.ranks) * run.ranks);
  run.accelerator.save_state(folder.path());  // the state is the same on all ranks
  step();
  CHECK(run.is_same_everywhere());
}

TEST_CASE("an exception ends the scope without a collective") {
  Run run({.steps = 2});
  try {
    LocalSGD local_sgd(run.accelerator, run.model, run.options);
    run.step();
    if (run.rank == 0)
      local_sgd.step();  // at the scope's end this rank would have taken another number of steps than the others
    throw std::runtime_error("in the loop");
  } catch (const std::runtime_error&) {
  }
  CHECK(run.one.weight() == Approx(local_steps(1, run.rank, 1)).epsilon(1e-5));
  run.accelerator.wait_for_everyone();
  run.step();
  CHECK(run.accelerator.gather(run.one.net->weight.detach()).numel() == run.ranks);
}

TEST_CASE("buffers become rank 0's with the averages, as after synchronised passes") {
  Accelerator accelerator;
  test::Net net;
  auto model = accelerator.prepare(net);
  {
    LocalSGD local_sgd(accelerator, model, {.steps = 100});
    for (int i = 0; i <= accelerator.process_index(); ++i) model(at::ones({1, 3}));
    CHECK(net->named_buffers()["calls"].item<int>() == accelerator.process_index() + 1);
  }
  CHECK(net->named_buffers()["calls"].item<int>() == 1);
}

TEST_CASE("a disabled LocalSGD does nothing; invalid uses are refused") {
  Run run({.steps = 1, .enabled = false});
  {
    LocalSGD local_sgd(run.accelerator, run.model, run.options);
    run.step();
    local_sgd.step();
    CHECK(run.is_same_everywhere());  // gradients were averaged
  }
  CHECK_THROWS_WITH(LocalSGD(run.accelerator, run.model, {.steps = 0}), ContainsSubstring("was given 0 steps"));
  Accelerator other;
  CHECK_THROWS_WITH(LocalSGD(other, run.model, {}), ContainsSubstring("another Accelerator has prepared"));
}

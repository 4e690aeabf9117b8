#include <cmath>
#include <thread>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

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

namespace {

using namespace std::chrono_literals;

/// A model with AdamW, whose moments differ where ranks train on data of their own.
struct MomentsRun {
  explicit MomentsRun(const std::filesystem::path& folder) : accelerator({.project = {.dir = folder}}) {}

  Accelerator accelerator;
  torch::nn::Linear net{3, 2};
  torch::optim::AdamW adam{net->parameters(), torch::optim::AdamWOptions(1e-2)};
  Model<torch::nn::Linear> model = accelerator.prepare(net);
  Optimizer optimizer = accelerator.prepare(adam);

  void step() {
    accelerator.backward(model(at::full({2, 3}, accelerator.process_index() + 1.0)).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }
  std::vector<at::Tensor> weights() const {
    return {net->weight.detach().clone(), net->bias.detach().clone(), moment().clone()};
  }
  at::Tensor moment() const {
    return dynamic_cast<torch::optim::AdamWParamState&>(*adam.state().at(net->weight.unsafeGetTensorImpl())).exp_avg();
  }
  bool is_same_everywhere() {
    return test::same_on_all_ranks(accelerator, net->weight) && test::same_on_all_ranks(accelerator, moment());
  }
};

}  // namespace

TEST_CASE("after equal numbers of local steps all ranks have the moments of one, and stay equal") {
  const State all;
  const test::Folder folder(all, "local_moments");
  MomentsRun run(folder.path());
  {
    LocalSGD local_sgd(run.accelerator, run.model, {.steps = 2});
    for (int step = 0; step < 4; ++step) {
      run.step();
      local_sgd.step();
    }
    CHECK(test::same_on_all_ranks(run.accelerator, run.moment()) == (all.num_processes() == 1));
  }
  CHECK(run.is_same_everywhere());
  for (int step = 0; step < 2; ++step) run.step();
  CHECK(run.is_same_everywhere());
}

TEST_CASE("within LocalSGD a run is saved where its replicas are equal, and nowhere else") {
  const State all;
  const test::Folder folder(all, "local_saves");
  std::vector<at::Tensor> saved;
  {
    MomentsRun run(folder.path());
    auto& accelerator = run.accelerator;
    const auto check_refused = [&] {
      const auto timed = accelerator.save_state_every(1ms);
      if (all.num_processes() == 1) return;
      CHECK_FALSE(timed.has_value());
      CHECK_THROWS_WITH(accelerator.save_state(),
                        ContainsSubstring("save_state() was called while each rank trains a replica of model 0"));
      CHECK_THROWS_WITH(accelerator.save_model(run.model, folder.path() / "model"),
                        ContainsSubstring("save_model() was called while each rank trains a replica of model 0"));
    };
    LocalSGD local_sgd(accelerator, run.model, {.steps = 2});
    check_refused();  // some ranks may have no batches
    run.step();
    local_sgd.step();
    check_refused();
    run.step();
    check_refused();
    local_sgd.step();
    std::this_thread::sleep_for(5ms);
    CHECK(accelerator.save_state_every(1ms).has_value());
    accelerator.save_model(run.model, folder.path() / "model");
    CHECK(run.is_same_everywhere());
    saved = run.weights();
    run.step();
    if (all.num_processes() > 1) check_refused();  // one rank would save again
    local_sgd.step();
    accelerator.wait_for_checkpoint();
  }
  MomentsRun resumed(folder.path());
  resumed.accelerator.load_state();
  for (std::size_t i = 0; i < saved.size(); ++i) CHECK(at::equal(resumed.weights()[i], saved[i]));
  resumed.accelerator.load_checkpoint_in_model(resumed.model, folder.path() / "model");
  CHECK(at::equal(resumed.net->weight, saved[0]));
}

TEST_CASE("replicas that an exception has left different are saved only after a load") {
  const State all;
  if (all.num_processes() == 1) return;
  const test::Folder folder(all, "local_exception");
  MomentsRun run(folder.path());
  run.step();
  run.accelerator.save_state();
  run.accelerator.wait_for_checkpoint();
  try {
    LocalSGD local_sgd(run.accelerator, run.model, {.steps = 2});
    run.step();
    throw std::runtime_error("in the loop");
  } catch (const std::runtime_error&) {
  }
  run.accelerator.wait_for_everyone();
  CHECK_THROWS_WITH(run.accelerator.save_state(), ContainsSubstring("after an exception, load a checkpoint"));
  run.accelerator.load_state();
  run.step();
  CHECK(run.is_same_everywhere());
  CHECK_NOTHROW(run.accelerator.save_state());
  run.accelerator.wait_for_checkpoint();
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

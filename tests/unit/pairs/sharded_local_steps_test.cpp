// LocalSGD of groups of ranks that share ZeRO's shards, with what else belongs to a step.
#include <torch/nn/modules/container/sequential.h>

#include <hortator/nn/moe.hpp>
#include <hortator/parallel/local_sgd.hpp>
#include <hortator/parallel/outer_optimizer.hpp>
#include <hortator/parallel/sync_batch_norm.hpp>
#include <limits>
#include <stdexcept>

#include "../accelerator/fixtures.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"
#include "weight.hpp"

using namespace hortator;
using test::are_close;
using test::are_equal;
using test::copies_of;
using test::Folder;
using test::Shardable;

namespace {

int ranks_of_a_group() {
  static const int ranks = State().num_processes() == 4 ? 2 : 1;
  return ranks;
}

AcceleratorOptions in_groups(int stage, AcceleratorOptions options = {}) {
  options.zero.stage = stage;
  options.parallel.replicate = static_cast<int>(State().num_processes()) / ranks_of_a_group();
  return options;
}

/// Each step goes by as much as the gradient.
struct DescentRun : test::WeightRun<torch::optim::SGD> {
  explicit DescentRun(const AcceleratorOptions& options) : WeightRun(options, 1) {}
  int rank = static_cast<int>(accelerator.process_index());
  int group = rank / ranks_of_a_group();
  int groups = static_cast<int>(accelerator.num_processes()) / ranks_of_a_group();
};

/// A model with AdamW in groups.
struct GroupRun {
  explicit GroupRun(const AcceleratorOptions& options) : accelerator(options) {}

  void step(int number) {
    accelerator.backward(model(test::batch(accelerator, number)).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }

  Accelerator accelerator;
  Shardable net;
  std::unique_ptr<torch::optim::Optimizer> adamw = test::make_adamw(net);
  Model<Shardable> model = accelerator.prepare(net);
  Optimizer optimizer = accelerator.prepare(*adamw);
};

struct Rounds {
  int first = 0, count = 2;
  std::filesystem::path save = {}, load = {};
  OuterWire wire = OuterWire::whole;
};

/// Rounds of two steps and an outer step. Saves after the second, within the scope: all groups then continue with the
/// moments of the first.
std::vector<at::Tensor> train(const AcceleratorOptions& options, const Rounds& rounds) {
  GroupRun run(options);
  OuterOptimizer outer(run.accelerator, run.model, {.wire = rounds.wire});
  if (!rounds.load.empty()) run.accelerator.load_state(rounds.load);
  LocalSGD local_sgd(run.accelerator, run.model, {.steps = 2, .outer = &outer});
  for (int number = 2 * rounds.first; number < 2 * (rounds.first + rounds.count); ++number) {
    run.step(number);
    local_sgd.step();
    if (number == 3 && !rounds.save.empty()) run.accelerator.save_state(rounds.save);
  }
  run.accelerator.wait_for_checkpoint();
  return copies_of(*run.net);
}

}  // namespace

TEST_CASE("within LocalSGD of groups an overflow on one rank skips the step of its group only") {
  for (const int stage : {1, 2, 3}) {
    for (const bool late : {false, true}) {
      DescentRun run(in_groups(stage, {.mixed_precision = Precision::fp16,
                                       .grad_scaler = {.init_scale = 1024, .late_verdict = late},
                                       .cpu = true}));
      {
        LocalSGD local_sgd(run.accelerator, run.model, {.steps = 2});
        for (int step = 0; step < 2; ++step) {
          run.step(run.rank == 0 && step == 0 ? std::numeric_limits<double>::infinity() : 1);
          local_sgd.step();
        }
      }
      CHECK(run.weight() == Approx(-(2.0 * run.groups - 1) / run.groups));  // group 0 has taken one step
      CHECK(run.accelerator.loss_scale().scale == 512);                     // of the first group
      run.step(1);
      CHECK(test::same_on_all_ranks(run.accelerator, run.net.w));
    }
  }
}

TEST_CASE("within LocalSGD a loss that is a sum is divided by the count of its group, or of its rank") {
  for (const int stage : {0, 1, 2}) {
    auto options = in_groups(stage);
    if (stage == 0) options.parallel.replicate.reset();
    DescentRun run(options);
    const int together = stage == 0 ? 1 : ranks_of_a_group();
    const double count = run.rank + 1.0;
    const auto step = [&] {
      run.accelerator.backward(run.model(count * count).sum(), count);
      run.optimizer.step();
      run.optimizer.zero_grad();
    };
    const auto mean_of = [](int first, int ranks) {
      double sum = 0, counts = 0;
      for (int rank = first; rank < first + ranks; ++rank) sum += (rank + 1.0) * (rank + 1.0), counts += rank + 1.0;
      return sum / counts;
    };
    const int world = static_cast<int>(run.accelerator.num_processes());
    double expected = 0;
    {
      LocalSGD local_sgd(run.accelerator, run.model, {.steps = 1});
      step();
      CHECK(run.weight() == Approx(-mean_of(run.rank / together * together, together)));
      local_sgd.step();
      for (int first = 0; first < world; first += together) expected -= mean_of(first, together) * together / world;
      CHECK(run.weight() == Approx(expected));
    }
    step();
    CHECK(run.weight() == Approx(expected - mean_of(0, world)));
  }
  DescentRun run(in_groups(1, {.gradient_accumulation_steps = 2}));
  const LocalSGD local_sgd(run.accelerator, run.model, {.steps = 1});
  const auto scope = run.accelerator.accumulate(run.model);
  CHECK_THROWS_WITH(run.accelerator.backward(run.model(1).sum(), 1),
                    ContainsSubstring("backward(loss_sum, count) was called within LocalSGD, in a micro-step"));
}

TEST_CASE("a group has the buffers of its first rank, and all ranks those of the first with an average") {
  for (const int stage : {1, 3}) {
    GroupRun run(in_groups(stage));
    const auto calls = [&] { return run.net->named_buffers()["calls"].item<int>(); };
    const int group = static_cast<int>(run.accelerator.process_index()) / ranks_of_a_group();
    LocalSGD local_sgd(run.accelerator, run.model, {.steps = 2 + group});
    run.step(0);
    run.net->named_buffers()["calls"].add_(10 * static_cast<int>(run.accelerator.process_index()));
    run.step(1);
    CHECK(calls() == 2 + 10 * group * ranks_of_a_group());
    for (int i = 0; i < group; ++i) run.step(2 + i);
    local_sgd.step();
    for (int i = 1; i < 2 + group; ++i) local_sgd.step();
    CHECK(calls() == 2);
  }
}

TEST_CASE("outer momentum of slices is in checkpoints, from which other stages continue") {
  const State state;
  const Folder folder(state, "group_outer");
  for (const auto wire : {OuterWire::whole, OuterWire::sparse}) {
    const auto whole = train(in_groups(2), {.count = 4, .save = folder.path() / "half", .wire = wire});
    const Rounds rest{.first = 2, .load = folder.path() / "half", .wire = wire};
    CHECK(are_equal(train(in_groups(2), rest), whole));
    if (wire == OuterWire::whole) {
      CHECK(are_close(train(in_groups(3), rest), whole, 1e-6));
    } else {
      CHECK_THROWS_WITH(train(in_groups(3), rest), ContainsSubstring("what was not sent is of slices of ZeRO stage 2"));
    }
  }
  if (ranks_of_a_group() > 1) return;  // each rank is a group: without ZeRO it trains alone as well
  const auto whole = train(in_groups(1), {.count = 4, .save = folder.path() / "half"});
  CHECK(are_close(train({}, {.first = 2, .load = folder.path() / "half"}), whole, 1e-6));
}

TEST_CASE("after an error within LocalSGD of groups all ranks train together again, and save after a load") {
  const State state;
  const Folder folder(state, "group_error");
  for (const int stage : {1, 2, 3}) {
    GroupRun run(in_groups(stage));
    run.step(0);
    run.accelerator.save_state(folder.path() / "saved");
    run.accelerator.wait_for_checkpoint();
    try {
      const LocalSGD local_sgd(run.accelerator, run.model, {.steps = 2});
      run.step(1);
      const auto y = run.model(test::batch(run.accelerator, 2));
      y.register_hook([](const at::Tensor&) -> at::Tensor { throw std::runtime_error("planted"); });
      run.accelerator.backward(y.square().mean());
    } catch (const std::runtime_error&) {
    }
    run.optimizer.zero_grad();
    run.accelerator.wait_for_everyone();
    CHECK_THROWS_WITH(run.accelerator.save_state(), ContainsSubstring("each group of ranks trains a replica"));
    run.accelerator.load_state(folder.path() / "saved");
    run.step(1);
    for (const auto& weight : copies_of(*run.net)) CHECK(test::same_on_all_ranks(run.accelerator, weight));
    CHECK_NOTHROW(run.accelerator.save_state(folder.path() / "saved"));
    run.accelerator.wait_for_checkpoint();
  }
}

TEST_CASE("what groups cannot train on their own is refused on all ranks") {
  GroupRun run(in_groups(1));
  auto& accelerator = run.accelerator;
  {
    LocalSGD local_sgd(accelerator, run.model, {.steps = 2});
    run.step(0);
    CHECK_THROWS_WITH(accelerator.summon_full_parameters(run.model),
                      ContainsSubstring("summon_full_parameters() was called while each group of ranks trains"));
    Ema ema(accelerator, run.model);
    CHECK_THROWS_WITH(ema.update(), ContainsSubstring("Ema::update() was called within LocalSGD"));
  }
  torch::nn::Linear other(3, 2);
  auto beside = accelerator.prepare(other);
  CHECK_THROWS_WITH(LocalSGD(accelerator, run.model),
                    ContainsSubstring("LocalSGD was called under ZeRO beside model 1, which all ranks train"));
  Accelerator thin(in_groups(1, {.ddp = {.comm_hook = DDPCommunicationHookType::power_sgd}}));
  Shardable third;
  auto in_factors = thin.prepare(third);
  CHECK_THROWS_WITH(LocalSGD(thin, in_factors),
                    ContainsSubstring("LocalSGD was called under ZeRO with ddp.comm_hook = power_sgd"));
  Accelerator more(in_groups(1));
  torch::nn::Sequential norms(torch::nn::Linear(3, 4), SyncBatchNorm1d(4));
  auto normed = more.prepare(norms);
  CHECK_THROWS_WITH(LocalSGD(more, normed), ContainsSubstring("with SyncBatchNorm layers"));
  Accelerator mixed(in_groups(1));
  nn::MoE mixture(nn::MoEOptions{.width = 4, .inner = 8, .experts = 2});
  auto routed = mixed.prepare(mixture);
  CHECK_THROWS_WITH(LocalSGD(mixed, routed), ContainsSubstring("with mixtures of experts"));
}

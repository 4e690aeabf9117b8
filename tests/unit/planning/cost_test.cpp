#include "planning/cost.hpp"

#include "parallel/pipeline/timeline.hpp"
#include "planning/choice.hpp"
#include "support/catch.hpp"

namespace hortator::planning {
namespace {

constexpr double gib = 1 << 30;

Machine node_of_eight() {
  return {.ranks_per_node = 8,
          .memory = std::uint64_t{80} << 30,
          .flops_fp32 = 1e13,
          .flops_16bit = 1e14,
          .within_node = {.bytes_per_second = 1e11, .latency = 1e-6},
          .between_nodes = {.bytes_per_second = 1e10, .latency = 1e-5},
          .disk_bytes_per_second = 1e9};
}

ModelFacts model() {
  return {.parameters = 40 * gib,
          .gradients = 40 * gib,
          .moments = 80 * gib,
          .activations = 20 * gib,
          .operations = 1e15,
          .tensor = {.parameters = {1}, .activations = {0.8}, .operations = {1}, .sent_bytes = gib, .calls = 100},
          .context = {.activations = {1}, .operations = {1}, .sent_bytes = gib, .calls = 50},
          .pipeline = {.parameters = {1}, .sent_bytes = gib / 10, .calls = 10},
          .recomputed_activations = 0.2,
          .recomputed_operations = 1.33};
}

PipelineSchedule planned(Schedule schedule) {
  if (schedule == Schedule::gpipe) return PipelineSchedule::gpipe;
  if (schedule == Schedule::zero_bubble) return PipelineSchedule::zero_bubble;
  return schedule == Schedule::interleaved ? PipelineSchedule::interleaved : PipelineSchedule::one_f_one_b;
}

}  // namespace

TEST_CASE("the bubble and what is held are those of the schedules themselves") {
  for (const auto schedule : {Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved, Schedule::zero_bubble}) {
    for (const int ranks : {2, 4, 8}) {
      for (const int rounds : {1, 2, 4, 8}) {
        const parallel::PipelineShape shape{.ranks = ranks,
                                            .stages_per_rank = schedule == Schedule::interleaved ? 2 : 1,
                                            .micro_batches = rounds * ranks};
        const auto plans = parallel::plan_ranks(planned(schedule), shape);
        const auto timeline = parallel::run_plans(plans, shape, {.forward = 1, .inputs = 1, .weights = 1});
        INFO(name_of(schedule) << ", " << ranks << " ranks, " << shape.micro_batches << " micro-batches");
        CHECK(bubble(schedule, ranks, shape.micro_batches) == Approx(timeline.idle_share()).margin(0.03));
        const double stages = shape.stages_per_rank;
        const double held = held_micro_batches(schedule, ranks, shape.micro_batches);
        CHECK(held == Approx(timeline.peaks.front() / stages).margin(schedule == Schedule::interleaved ? 1.0 : 0.0));
      }
    }
  }
}

TEST_CASE("a share that is divided is found from one rank and two") {
  CHECK(Divided::fitted(100, 50, 2).share == 1);
  CHECK(Divided::fitted(100, 100, 2).share == 0);
  CHECK(Divided::fitted(100, 60, 2).share == Approx(0.8));
  CHECK(Divided::fitted(100, 60, 2).on(8) == Approx(0.3));
  CHECK(Divided::fitted(100, 130, 2).share == 0);
  CHECK(Divided::fitted(0, 0, 2).share == 0);
}

TEST_CASE("no rank more and no saving setting needs more memory") {
  for (const auto& one : candidates({.ranks = 64, .ranks_per_node = 8})) {
    const double bytes = memory_cost(model(), one).total();
    auto other = one;
    other.recompute = true;
    CHECK(memory_cost(model(), other).total() <= bytes);
    if (one.zero < 3 && one.data > 1 && one.pipeline == 1) {
      other = one;
      ++other.zero;
      CHECK(memory_cost(model(), other).total() <= bytes);
    }
    other = one;
    other.tensor *= 2;
    CHECK(memory_cost(model(), other).total() <= bytes);
  }
}

TEST_CASE("ZeRO divides moments, then gradients, then parameters") {
  const auto at = [](int zero) { return memory_cost(model(), {.data = 8, .zero = zero}); };
  CHECK(at(0).moments == 80 * gib);
  CHECK(at(1).moments == 10 * gib);
  CHECK(at(1).gradients == 40 * gib);
  CHECK(at(2).gradients == 5 * gib);
  CHECK(at(2).parameters == 40 * gib);
  CHECK(at(3).parameters == 5 * gib);
}

TEST_CASE("stage 3 holds layers in use, and offloaded bytes are on the host") {
  auto facts = model();
  facts.layers_in_use = 2 * gib;
  for (const auto& one : candidates({.ranks = 32, .ranks_per_node = 8, .offload = true})) {
    auto kept = one;
    kept.offload = kept.offload_parameters = false;
    const auto cost = memory_cost(facts, one);
    const auto all = memory_cost(facts, kept);
    CHECK(all.on_host == 0);
    CHECK(cost.total() + cost.on_host == Approx(all.total()));
    CHECK(cost.on_host == Approx((one.offload ? all.moments : 0) + (one.offload_parameters ? all.parameters : 0)));
    CHECK(cost.buffers == Approx(one.zero == 3 ? 2 * gib / one.tensor : 0));
  }
  facts.layers_in_use = 1000 * gib;
  CHECK(memory_cost(facts, {.data = 2, .zero = 3}).buffers == 40 * gib);
}

TEST_CASE("time has no negative part, and more operations cost more") {
  const auto machine = node_of_eight();
  for (const auto& one : candidates({.ranks = 32, .ranks_per_node = 8})) {
    const auto time = time_cost(predicted_work(model(), one), one, machine, false);
    CHECK(time.computing > 0);
    CHECK(time.communicating >= 0);
    CHECK(time.idle >= 0);
    auto work = predicted_work(model(), one);
    work.operations *= 2;
    CHECK(time_cost(work, one, machine, false).total() > time.total());
    CHECK(time_cost(predicted_work(model(), one), one, machine, true).computing < time.computing);
  }
}

TEST_CASE("links between nodes count for groups that do not fit into one") {
  const auto machine = node_of_eight();
  const Work work{.operations = 1, .tensor_bytes = 1e11};
  const auto within = time_cost(work, {.tensor = 8}, machine, false);
  const auto between = time_cost(work, {.tensor = 16}, machine, false);
  CHECK(within.communicating == Approx(1).margin(0.01));
  CHECK(between.communicating == Approx(10).margin(0.01));
}

TEST_CASE("what fits comes first, the fastest of it first") {
  const auto machine = node_of_eight();
  const auto all = ranked(model(), {.ranks = 16, .ranks_per_node = 8}, machine);
  REQUIRE(all.size() == candidates({.ranks = 16, .ranks_per_node = 8}).size());
  CHECK(all.front().fits(machine.memory));
  CHECK(!all.back().fits(machine.memory));
  for (std::size_t i = 1; i < all.size(); ++i) {
    const bool fits = all[i].fits(machine.memory);
    CHECK((all[i - 1].fits(machine.memory) || !fits));
    if (fits) CHECK(all[i - 1].throughput >= all[i].throughput);
    if (!all[i - 1].fits(machine.memory)) CHECK(all[i - 1].memory.total() <= all[i].memory.total());
  }
}

}  // namespace hortator::planning

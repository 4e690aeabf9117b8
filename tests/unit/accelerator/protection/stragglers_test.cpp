// Ranks that are slow in each step are named, at no extra MPI call.
#include <torch/optim/sgd.h>

#include <thread>

#include "integration/scale/traffic.hpp"
#include "parallel/pace/step_times.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using namespace std::chrono_literals;
using parallel::StepTimes;
using parallel::StragglerWatch;

namespace {

/// Trains `steps` steps of a few milliseconds, three times as long on the last rank.
std::int64_t train(int stage, int steps, std::chrono::milliseconds of_last, const StragglerOptions& stragglers) {
  Accelerator accelerator({.stragglers = stragglers, .zero = {.stage = stage}});
  torch::nn::Linear net(8, 8);
  torch::optim::SGD sgd(net->parameters(), 0.01);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  std::int64_t calls = 0;
  for (int step = 0; step < steps; ++step) {
    if (step == 1) calls = scale::traffic().calls;  // without what the first step sets up
    std::this_thread::sleep_for(accelerator.is_last_process() ? of_last : 5ms);
    accelerator.backward(model(at::ones({2, 8})).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }
  calls = scale::traffic().calls - calls;
  accelerator.wait_for_everyone();
  return calls;
}

}  // namespace

TEST_CASE("a rank that is slowed threefold is named within 20 steps on all ranks") {
  const State state;
  if (state.num_processes() == 1) return;
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    std::vector<Straggler> found;
    train(stage, 20, 15ms, {.on_straggler = [&](const Straggler& slow) { found.push_back(slow); }});
    REQUIRE(found.size() == 1);
    CHECK(found[0].rank == state.num_processes() - 1);
    CHECK(found[0].factor > 2);
    CHECK(found[0].factor < 6);
    CHECK_FALSE(found[0].host.empty());
  }
}

TEST_CASE("where ranks do not average all gradients together, the option that divides them is named") {
  const State state;
  const int ranks = static_cast<int>(state.num_processes());
  if (ranks == 1) return;
  const StragglerOptions options = {.on_straggler = [](const Straggler&) {}};
  CHECK_THROWS_WITH(Accelerator({.stragglers = options, .parallel = {.pipeline = ranks}}),
                    Catch::Contains("parallel.pipeline is used"));
  CHECK_THROWS_WITH(Accelerator({.stragglers = options, .parallel = {.tensor = ranks}}),
                    Catch::Contains("parallel.tensor is used"));
}

TEST_CASE("times cost no MPI call") {
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    const auto without = train(stage, 12, 5ms, {});
    CHECK(train(stage, 12, 5ms, {.on_straggler = [](const Straggler&) {}}) == without);
  }
}

TEST_CASE("many ranks report in turns, and each message is read whether it was added up or averaged") {
  const int ranks = 150;
  std::vector<StepTimes> all;
  for (int rank = 0; rank < ranks; ++rank) all.emplace_back(rank, ranks);
  std::vector<int> reported(ranks, 0);
  for (int pass = 0; pass < 6; ++pass) {
    std::vector<float> sum(all[0].message_size(), 0.0F);
    for (auto& one : all) {
      const auto message = one.report();
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += message[i];
    }
    if (pass % 2 == 1) {
      for (auto& number : sum) number /= static_cast<float>(ranks);
    }
    for (auto& one : all) {
      one.receive(sum);
      for (const auto& report : one.take_reports()) {
        CHECK(report.seconds > 0);
        CHECK(report.seconds < 60);
        ++reported[static_cast<std::size_t>(report.rank)];
      }
    }
  }
  for (const int count : reported) CHECK(count == 2 * ranks);  // twice, on each rank
}

TEST_CASE("a rank is named once it is slow for long enough, and again after it has recovered") {
  StragglerWatch watch(3, 2, 3);
  const auto note = [&](double of_last) { return watch.note({{0, 1.0}, {1, 1.1}, {2, of_last}}); };
  for (int i = 0; i < 2; ++i) CHECK(note(3).empty());
  CHECK(note(1).empty());
  for (int i = 0; i < 2; ++i) CHECK(note(3).empty());
  const auto found = note(3.3);
  REQUIRE(found.size() == 1);
  CHECK(found[0].rank == 2);
  CHECK(found[0].factor == Approx(3));
  for (int i = 0; i < 10; ++i) CHECK(note(3).empty());
  for (int i = 0; i < 3; ++i) CHECK(note(1).empty());
  for (int i = 0; i < 2; ++i) CHECK(note(3).empty());
  CHECK(note(3).size() == 1);
  StragglerWatch all_slow(3, 2, 1);
  CHECK(all_slow.note({{0, 1.0}, {1, 1.0}, {2, 1.0}}).empty());
  CHECK(all_slow.note({{0, 9.0}, {1, 9.0}, {2, 9.0}}).empty());
}

TEST_CASE("straggler options that cannot be met are refused") {
  const auto on_straggler = [](const Straggler&) {};
  CHECK_THROWS_WITH(Accelerator({.stragglers = {.on_straggler = on_straggler, .factor = 1}}),
                    ContainsSubstring("stragglers.factor is 1"));
  CHECK_THROWS_WITH(Accelerator({.stragglers = {.on_straggler = on_straggler, .patience = 0}}),
                    ContainsSubstring("patience is 0"));
  if (State().num_processes() == 1) return;
  AcceleratorOptions mine;
  if (State().is_main_process()) mine.stragglers.on_straggler = on_straggler;
  CHECK_THROWS_WITH(Accelerator(mine), ContainsSubstring("stragglers"));
}

TEST_CASE("a pass that reaches several models has one time, which each of their messages carries") {
  for (const bool is_plain : {false, true}) {  // plain backward notes the end of computing for each model
    std::vector<StepTimes> ranks = {{0, 2}, {1, 2}};
    for (int pass = 0; pass < 3; ++pass) {
      for (auto& one : ranks) {
        one.begin_model();
        one.begin_model();
      }
      std::this_thread::sleep_for(6ms);
      for (auto& one : ranks) one.note_computed();
      for (int model = 0; model < 2; ++model) {
        if (is_plain && model > 0) {
          for (auto& one : ranks) one.note_computed();
        }
        auto sum = ranks[0].report();
        const auto other = ranks[1].report();
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
        for (auto& one : ranks) {
          one.receive(sum);
          one.end_model();
        }
      }
      const auto reports = ranks[0].take_reports();
      REQUIRE(reports.size() == 2);  // once for each rank, whatever the number of models
      for (const auto& report : reports) {
        CHECK(report.seconds > 5e-3);
        CHECK(report.seconds < 5);
      }
    }
  }
}

TEST_CASE("a slow rank is named once where two models train together, after accelerator.backward and plain backward") {
  const State state;
  if (state.num_processes() == 1) return;
  for (const bool is_plain : {false, true}) {
    INFO((is_plain ? "plain backward" : "accelerator.backward"));
    std::vector<Straggler> found;
    Accelerator accelerator({.stragglers = {.on_straggler = [&](const Straggler& slow) { found.push_back(slow); }}});
    torch::nn::Linear a(8, 8), b(8, 8);
    torch::optim::SGD of_a(a->parameters(), 0.01), of_b(b->parameters(), 0.01);
    auto [first, second, first_optimizer, second_optimizer] = accelerator.prepare(a, b, of_a, of_b);
    for (int step = 0; step < 20; ++step) {
      std::this_thread::sleep_for(accelerator.is_last_process() ? 25ms : 5ms);
      const auto loss = second(first(at::ones({2, 8}))).square().mean();
      is_plain ? loss.backward() : accelerator.backward(loss);
      first_optimizer.step();
      second_optimizer.step();
      first_optimizer.zero_grad();
      second_optimizer.zero_grad();
    }
    accelerator.wait_for_everyone();
    REQUIRE(found.size() == 1);
    CHECK(found[0].rank == state.num_processes() - 1);
    CHECK(found[0].factor > 2);
  }
}

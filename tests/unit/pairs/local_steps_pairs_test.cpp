// LocalSGD, in which each rank takes steps of its own, with what else belongs to a step.
#include <torch/nn/modules/container/sequential.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "../accelerator/fixtures.hpp"
#include "support/catch.hpp"
#include "weight.hpp"

using namespace hortator;
using test::Weight;

namespace {

/// Each step goes by as much as the gradient.
struct DescentRun : test::WeightRun<torch::optim::SGD> {
  explicit DescentRun(const AcceleratorOptions& options) : WeightRun(options, 1) {}
};

AcceleratorOptions fp16(bool late) {
  return {.mixed_precision = Precision::fp16, .grad_scaler = {.init_scale = 1024, .late_verdict = late}, .cpu = true};
}

double mean_over(int ranks, const std::function<double(int)>& value) {
  double sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += value(rank);
  return sum / ranks;
}

}  // namespace

TEST_CASE("within LocalSGD an overflow skips the step of its own rank, and all end with the scale of the most steps") {
  for (const bool late : {false, true}) {
    DescentRun run(fp16(late));
    const int rank = run.accelerator.process_index();
    const int ranks = run.accelerator.num_processes();
    {
      LocalSGD local_sgd(run.accelerator, run.model, {.steps = 2});
      for (int step = 0; step < 2 + 2 * rank; ++step) {
        run.step(rank == 0 && step == 0 ? std::numeric_limits<double>::infinity() : 1);
        local_sgd.step();
      }
    }
    // Rank 0 takes one step and has the average of its group with the others' two; a rank that is done stays in it.
    double expected = mean_over(ranks, [](int one) { return one == 0 ? -1.0 : -2.0; });
    for (int group = 1; group < ranks; ++group)
      expected = mean_over(ranks, [&](int one) { return one >= group ? expected - 2 : expected; });
    CHECK(run.weight() == Approx(expected));
    CHECK(run.accelerator.loss_scale().scale == 1024);  // of the last rank, which had no overflow
    run.step(rank == 0 ? std::numeric_limits<double>::infinity() : 1);
    run.step(1);
    CHECK(run.weight() == Approx(expected - 1));  // the overflow of one rank counts for all of them again
    CHECK(run.accelerator.loss_scale().scale == 512);
  }
}

TEST_CASE("after an error within LocalSGD all ranks have the scale with which the scope began") {
  DescentRun run(fp16(/*late=*/false));
  try {
    const LocalSGD local_sgd(run.accelerator, run.model, {.steps = 2});
    run.step(run.accelerator.is_main_process() ? std::numeric_limits<double>::infinity() : 1);
    throw std::runtime_error("planted");
  } catch (const std::runtime_error&) {
  }
  CHECK(run.accelerator.loss_scale().scale == 1024);
  run.step(1);
  CHECK_FALSE(run.optimizer.step_was_skipped());
  CHECK(run.weight() == (run.accelerator.is_main_process() ? -1 : -2));
}

TEST_CASE(
    "LocalSGD counts its calls, also of micro-steps, and an unfinished group's gradients are averaged at its end") {
  DescentRun run({.gradient_accumulation_steps = 2});
  const int ranks = run.accelerator.num_processes();
  const auto times = [](int rank) { return rank + 1.0; };
  const double mine = times(run.accelerator.process_index());
  const double all = mean_over(ranks, times);
  const auto micro_step = [&] {
    const auto scope = run.accelerator.accumulate(run.model);
    run.step(mine);
  };
  {
    LocalSGD local_sgd(run.accelerator, run.model, {.steps = 3});
    for (int call = 0; call < 3; ++call) {
      micro_step();
      local_sgd.step();
      if (call == 1) CHECK(run.weight() == Approx(-mine));  // a mean over two micro-steps
    }
    CHECK(run.weight() == Approx(-all));  // averaged after the third call, in the middle of an update
  }
  micro_step();  // the fourth: the update of one micro-step of each rank's own, and this one
  CHECK(run.weight() == Approx(-2 * all));
  CHECK(test::same_on_all_ranks(run.accelerator, run.net.w));
}

TEST_CASE("within LocalSGD clipping is by the norm of the rank's own gradients") {
  DescentRun run({});
  const double mine = run.accelerator.process_index() + 2.0;
  {
    LocalSGD local_sgd(run.accelerator, run.model, {.steps = 5});
    run.accelerator.backward(run.model(mine).sum());
    CHECK(run.accelerator.clip_grad_norm_(run.model.parameters(), 1).item<double>() == Approx(mine));
    run.optimizer.step();
    run.optimizer.zero_grad();
    CHECK(run.weight() == Approx(-1).epsilon(1e-4));
    run.accelerator.backward(run.model(-mine).sum());
    run.accelerator.clip_grad_value_(run.model.parameters(), 0.5);
    run.optimizer.step();
    CHECK(run.weight() == Approx(-0.5).epsilon(1e-4));
  }
}

TEST_CASE("after LocalSGD each of several optimizers has the moments of one rank, whichever ranks have stepped it") {
  Accelerator accelerator;
  at::manual_seed(5);
  torch::nn::Sequential net(torch::nn::Linear(3, 4), torch::nn::Linear(4, 1));
  torch::optim::AdamW first(net[0]->parameters(), 1e-2);
  torch::optim::AdamW second(net[1]->parameters(), 1e-2);
  auto [model, optimizer, other] = accelerator.prepare(net, first, second);
  const bool is_last = accelerator.is_last_process();
  const auto step = [&, &model = model, &optimizer = optimizer, &other = other](bool also_second) {
    accelerator.backward(model(at::full({2, 3}, 1.0 + accelerator.process_index())).square().mean());
    optimizer.step();
    if (also_second) other.step();
    optimizer.zero_grad();
    other.zero_grad();
  };
  {
    LocalSGD local_sgd(accelerator, model, {.steps = 2});
    for (int i = 0; i < (is_last ? 4 : 2); ++i) {  // the rank with the most steps has never stepped the second one
      step(!is_last);
      local_sgd.step();
    }
  }
  for (int i = 0; i < 2; ++i) step(true);
  for (const auto& parameter : net->parameters()) CHECK(test::same_on_all_ranks(accelerator, parameter));
}

TEST_CASE("beside a model in LocalSGD another one trains with averaged gradients, if all ranks take as many steps") {
  const auto train = [](bool with_local) {
    Accelerator accelerator;
    Weight local_net;
    Weight net;
    torch::optim::SGD sgd(local_net.parameters(), 1.0);
    torch::optim::SGD other(net.parameters(), 1.0);
    auto [local, model, optimizer, other_optimizer] = accelerator.prepare(local_net, net, sgd, other);
    {
      LocalSGD local_sgd(accelerator, local, {.steps = 2, .enabled = with_local});
      for (int i = 0; i < 3; ++i) {
        const double mine = i + accelerator.process_index() + 1.0;
        accelerator.backward(local(mine).sum() + model(mine).square().sum() - model(mine).sum());
        optimizer.step();
        other_optimizer.step();
        optimizer.zero_grad();
        other_optimizer.zero_grad();
        local_sgd.step();
        CHECK(test::same_on_all_ranks(accelerator, net.w));
      }
    }
    CHECK(test::same_on_all_ranks(accelerator, local_net.w));
    return std::pair(local_net.w.item<double>(), net.w.item<double>());
  };
  const auto [expected_local, expected] = train(false);
  const auto [local, other] = train(true);
  CHECK(local == Approx(expected_local));  // its gradient does not depend on the weight
  CHECK(other == expected);
}

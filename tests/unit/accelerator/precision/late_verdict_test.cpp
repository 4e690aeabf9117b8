// fp16 with late verdicts, which the host learns one step later, compared with runs that wait for each verdict.
#include <torch/optim/rmsprop.h>

#include <limits>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Net;

namespace {

enum class Verdicts { exact, late };

AcceleratorOptions fp16_with(Verdicts verdicts) {
  return {.mixed_precision = Precision::fp16,
          .grad_scaler = {.init_scale = 1025.3,
                          .growth_factor = 1.7,
                          .growth_interval = 3,
                          .late_verdict = verdicts == Verdicts::late},
          .cpu = true,
          .log_with = {}};
}

bool overflows_in(int step) { return step == 0 || step == 3 || step == 4 || step == 9; }

/// What a run reports after each step, and its result.
struct LateTrace {
  std::vector<bool> skipped = {};
  std::vector<std::int64_t> schedule_steps = {};
  std::vector<at::Tensor> parameters = {};
  std::int64_t optimizer_steps = 0;
  LossScale scale = {};
};

std::unique_ptr<torch::optim::Optimizer> adamw_or_sgd(bool adamw, const Net& net) {
  if (adamw) return std::make_unique<torch::optim::AdamW>(net->parameters(), 1e-2);
  return std::make_unique<torch::optim::SGD>(net->parameters(),
                                             torch::optim::SGDOptions(1e-2).momentum(0.9).dampening(0.3));
}

LateTrace late_trace(Verdicts verdicts, bool adamw, std::optional<int> zero_stage = {}) {
  auto options = fp16_with(verdicts);
  options.zero.stage = zero_stage;
  Accelerator accelerator(options);
  at::manual_seed(5);
  Net net;
  const auto own = adamw_or_sgd(adamw, net);
  // The rate is constant: a schedule that is held back one step later would use another rate in between.
  auto [model, optimizer, schedule] = accelerator.prepare(net, *own, Schedule(*own, [](std::int64_t) { return 1.0; }));
  LateTrace trace;
  for (int step = 0; step < 12; ++step) {
    const auto data = at::full({2, 3}, 0.1 * (step + accelerator.process_index()));
    auto loss = at::mse_loss(model(data), at::ones({2, 1}));
    if (overflows_in(step) && accelerator.is_last_process()) loss = loss * std::numeric_limits<double>::infinity();
    accelerator.backward(loss);
    accelerator.clip_grad_norm_(net->parameters(), 0.5);
    optimizer.step();
    schedule.step();
    optimizer.zero_grad();
    trace.skipped.push_back(optimizer.step_was_skipped());
    CHECK(accelerator.optimizer_step_was_skipped() == trace.skipped.back());
    trace.schedule_steps.push_back(schedule.steps() / accelerator.num_processes());
  }
  accelerator.end_training();
  trace.scale = accelerator.loss_scale();
  if (adamw) {
    for (const auto& [parameter, state] : own->state())
      trace.optimizer_steps =
          std::max(trace.optimizer_steps, static_cast<torch::optim::AdamWParamState&>(*state).step());
  }
  const auto full = accelerator.summon_full_parameters(model);
  for (const auto& parameter : net->parameters()) trace.parameters.push_back(parameter.detach().clone());
  return trace;
}

void check_equal_with_lag(const LateTrace& late, const LateTrace& exact) {
  for (std::size_t i = 0; i < exact.parameters.size(); ++i) CHECK(at::equal(late.parameters[i], exact.parameters[i]));
  CHECK(late.optimizer_steps == exact.optimizer_steps);
  CHECK(late.scale == exact.scale);
  CHECK_FALSE(late.skipped[0]);
  CHECK(late.schedule_steps[0] == 1);
  for (std::size_t step = 1; step < exact.skipped.size(); ++step) {
    CHECK(late.skipped[step] == exact.skipped[step - 1]);
    CHECK(late.schedule_steps[step] == exact.schedule_steps[step - 1] + 1);
  }
}

}  // namespace

TEST_CASE("late verdicts: the run is bitwise equal to an exact one, and its reports lag by one step") {
  for (const bool adamw : {true, false}) {
    const auto exact = late_trace(Verdicts::exact, adamw);
    CHECK(exact.skipped[0]);
    CHECK(exact.skipped[9]);
    CHECK_FALSE(exact.skipped[10]);
    check_equal_with_lag(late_trace(Verdicts::late, adamw), exact);
  }
}

TEST_CASE("late verdicts with ZeRO: the run is bitwise equal to an exact one, and its reports lag by one step") {
  for (const int stage : {1, 2})
    check_equal_with_lag(late_trace(Verdicts::late, true, stage), late_trace(Verdicts::exact, true, stage));
}

TEST_CASE("late verdicts: a run that resumes right after a skipped step equals an uninterrupted one") {
  test::Folder folder(State(), "late_resume");
  const auto run = [&](bool resume) {
    auto options = fp16_with(Verdicts::late);
    options.project.dir = folder.path();
    Accelerator accelerator(options);
    at::manual_seed(resume ? 9 : 5);
    Net net;
    torch::optim::AdamW adamw(net->parameters(), 1e-2);
    auto [model, optimizer, schedule] =
        accelerator.prepare(net, adamw, linear_warmup(adamw, {.warmup_steps = 5, .total_steps = 400}));
    if (resume) accelerator.load_state();
    for (int step = resume ? 4 : 0; step < 12; ++step) {
      auto loss = at::mse_loss(model(at::full({2, 3}, 0.1 * step)), at::ones({2, 1}));
      if (overflows_in(step)) loss = loss * std::numeric_limits<double>::infinity();
      accelerator.backward(loss);
      optimizer.step();
      schedule.step();
      optimizer.zero_grad();
      if (step == 3 && !resume) accelerator.save_state();
    }
    accelerator.end_training();
    return std::tuple(net, accelerator.loss_scale(), schedule.steps());
  };
  const auto [whole, scale, steps] = run(false);
  const auto [resumed, resumed_scale, resumed_steps] = run(true);
  CHECK(test::same_parameters(*whole, *resumed));
  CHECK(scale == resumed_scale);
  CHECK(steps == resumed_steps);
}

TEST_CASE("late verdicts: two optimizers keep one scale if one of them steps rarely") {
  const auto run = [](Verdicts verdicts) {
    Accelerator accelerator(fp16_with(verdicts));
    at::manual_seed(5);
    Net often;
    Net rarely;
    torch::optim::AdamW adamw_often(often->parameters(), 1e-2);
    torch::optim::AdamW adamw_rarely(rarely->parameters(), 1e-2);
    auto [a, b, first, second] = accelerator.prepare(often, rarely, adamw_often, adamw_rarely);
    for (int step = 0; step < 12; ++step) {
      const auto data = at::full({2, 3}, 0.1 * step);
      auto loss = a(data).square().sum() + b(data).square().sum();
      if (overflows_in(step)) loss = loss * std::numeric_limits<double>::infinity();
      accelerator.backward(loss);
      first.step();
      first.zero_grad();
      if (step % 4 == 3) {
        second.step();
        second.zero_grad();
      }
    }
    accelerator.end_training();
    return std::tuple(often, rarely, accelerator.loss_scale());
  };
  const auto [often, rarely, scale] = run(Verdicts::exact);
  const auto [late_often, late_rarely, late_scale] = run(Verdicts::late);
  CHECK(test::same_parameters(*often, *late_often));
  CHECK(test::same_parameters(*rarely, *late_rarely));
  CHECK(scale == late_scale);
}

TEST_CASE("late verdicts: ranks without batches follow, and all ranks continue identically") {
  auto options = fp16_with(Verdicts::late);
  options.data.even_batches = false;
  Accelerator accelerator(options);
  if (accelerator.num_processes() == 1) return;  // no rank follows another
  Net net;
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  auto [model, optimizer] = accelerator.prepare(net, adamw);
  {
    auto joined = accelerator.join_uneven_inputs({model});
    for (int step = 0; step <= 2 * accelerator.process_index(); ++step) {
      auto loss = model(at::full({2, 3}, 0.1 * step)).sum();
      if (step == 2 * accelerator.process_index()) loss = loss * std::numeric_limits<double>::infinity();
      accelerator.backward(loss);
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  CHECK(optimizer.step_was_skipped());
  const auto scales = accelerator.gather(at::full({1}, accelerator.loss_scale().scale));
  CHECK(at::equal(scales, scales[0].expand_as(scales)));
  for (const bool reports_last_step : {true, false}) {
    const auto before = net->out->bias.detach().clone();
    accelerator.backward(model(at::ones({2, 3})).sum());
    optimizer.step();
    optimizer.zero_grad();
    CHECK(optimizer.step_was_skipped() == reports_last_step);
    CHECK_FALSE(at::equal(before, net->out->bias));
  }
}

TEST_CASE("late verdicts: an optimizer that cannot skip a step on the device is refused") {
  for (const bool fused : {true, false}) {
    auto options = fp16_with(Verdicts::late);
    options.fused_optimizer = fused;
    Accelerator accelerator(options);
    Net net;
    std::unique_ptr<torch::optim::Optimizer> own = adamw_or_sgd(true, net);
    if (fused) own = std::make_unique<torch::optim::RMSprop>(net->parameters());
    auto [model, optimizer] = accelerator.prepare(net, *own);
    accelerator.backward(model(at::ones({2, 3})).sum());
    CHECK_THROWS_WITH(optimizer.step(), ContainsSubstring("grad_scaler.late_verdict") && ContainsSubstring("AdamW"));
  }
}

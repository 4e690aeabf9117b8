#include <ATen/Parallel.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>

#include <hortator/error.hpp>
#include <hortator/training/random.hpp>
#include <ranges>
#include <utility>

#include "bench/bare_step.hpp"
#include "bench/measurements.hpp"
#include "bench/workloads.hpp"
#include "core/text/text.hpp"
#include "step/optimizer/fused_step.hpp"

namespace hortator::bench {
namespace {

constexpr std::int64_t accumulated = 2;
constexpr double rate = 1e-3;
constexpr double max_norm = 1.0;

double factor(std::int64_t step) { return 1.0 / static_cast<double>(1 + step / 1000); }

void check_alone(const Accelerator& accelerator, const Selection& selection) {
  if (accelerator.num_processes() > 1) {
    throw UsageError({.what = "Bench loop was started on several ranks",
                      .why = "it times what surrounds the arithmetic, and the bare loop does not communicate",
                      .hint = "run it on one rank: hortator bench loop"});
  }
  if (!selection.cases.empty()) {
    throw UsageError(
        {.what = text::concat("--case: bench loop has no cases, got ", text::quote(selection.cases.front())),
         .hint = "remove --case, or use hortator bench step"});
  }
}

/// The same loop in plain LibTorch.
class BareLoop {
 public:
  BareLoop(const Workload& workload, OneBatch batch)
      : workload_(workload), batch_(std::move(batch)), net_(workload.make_net()) {
    net_->to(batch_.input.device());
    optimizer_ = std::make_unique<torch::optim::AdamW>(net_->parameters(), rate);
  }

  void step() {
    (workload_.loss(net_->forward(batch_.input), batch_.target) / accumulated).backward();
    if (++micro_steps_ % accumulated != 0) return;
    torch::nn::utils::clip_grad_norm_(net_->parameters(), max_norm);
    step::step(*optimizer_, step::StepKernel::fused);
    for (auto& group : optimizer_->param_groups()) group.options().set_lr(rate * factor(micro_steps_ / accumulated));
    optimizer_->zero_grad();
  }

 private:
  const Workload& workload_;
  OneBatch batch_;
  std::shared_ptr<Net> net_;
  std::unique_ptr<torch::optim::AdamW> optimizer_;
  std::int64_t micro_steps_ = 0;
};

}  // namespace

std::vector<Result> loop(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  check_alone(accelerator, selection);
  set_seed(1);
  const auto& workload = workloads().front();
  const auto batch = make_batch(accelerator, workload);
  BareLoop bare(workload, batch);

  auto net = workload.make_net();
  torch::optim::AdamW adamw(net->parameters(), rate);
  accelerator.set_gradient_accumulation_steps(accumulated);
  auto [model, optimizer, schedule] = accelerator.prepare(net, adamw, Schedule(adamw, factor));
  auto steps = accelerator.progress(std::views::iota(std::int64_t{0}, std::int64_t{1} << 40), "bench loop");
  auto place = steps.begin();
  const auto prepared_step = [&, &model = model, &optimizer = optimizer, &schedule = schedule] {
    auto micro_step = accelerator.accumulate(model);
    const auto loss = workload.loss(model(batch.input), batch.target);
    accelerator.backward(loss);
    if (accelerator.sync_gradients()) accelerator.clip_grad_norm_(model.parameters(), max_norm);
    optimizer.step();
    schedule.step();
    optimizer.zero_grad();
    accelerator.log({{"loss", loss}});
    ++place;
  };

  Result result{
      .name = "loop",
      .params = {{"workload", workload.name},
                 {"threads", at::get_num_threads()},
                 {"device", accelerator.device().str()},
                 {"accumulation", accumulated},
                 {"steps", plan.steps}},
      .reference = "bare LibTorch loop with clipping, same optimizer kernel",
      .timing = time_in_pairs(
          {.ours = prepared_step, .reference = [&] { bare.step(); }, .line_up = [&] { line_up(accelerator); }}, plan)};
  accelerator.set_gradient_accumulation_steps(1);
  accelerator.free_memory();
  return {result};
}

}  // namespace hortator::bench

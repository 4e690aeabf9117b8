#include <ATen/ops/tensor.h>

#include <hortator/training/random.hpp>
#include <vector>

#include "bench/bare_step.hpp"

namespace hortator::bench {
namespace {

// The time that each step of this rank spent on averaging gradients.
struct Spent {
  std::vector<double> copying = {};
  std::vector<double> reducing = {};
  std::vector<double> waiting = {};

  void add(const GradientTimes& before, const GradientTimes& after) {
    copying.push_back(after.copying - before.copying);
    reducing.push_back(after.starting + after.buffers - before.starting - before.buffers);
    waiting.push_back(after.waiting - before.waiting);
  }
};

// All ranks must have the same number of steps. @collective
std::vector<double> each_over_ranks(Accelerator& accelerator, const std::vector<double>& seconds, Reduce operation) {
  const auto reduced = accelerator.reduce(at::tensor(seconds, at::kDouble), operation);
  return {reduced.const_data_ptr<double>(), reduced.const_data_ptr<double>() + reduced.numel()};
}

// In each step, the time that others wait longer than the rank that waits least is spent on that rank's computing. It
// may be a different rank in each step. @collective
void add_times(Accelerator& accelerator, const Spent& spent, Result& result) {
  const auto min_waiting = each_over_ranks(accelerator, spent.waiting, Reduce::min);
  const auto max_waiting = each_over_ranks(accelerator, spent.waiting, Reduce::max);
  result.copying_s = median(each_over_ranks(accelerator, spent.copying, Reduce::max));
  result.reducing_s = median(each_over_ranks(accelerator, spent.reducing, Reduce::max));
  result.waiting_s = median(min_waiting);
  result.imbalance_s = mean_gap(min_waiting, max_waiting);
}

Result time_prepared(Accelerator& accelerator, const Plan& plan, const Workload& workload) {
  set_seed(1, {.device_specific = true});
  const auto batch = make_batch(accelerator, workload);
  BareStep bare_step(accelerator, workload, batch);

  auto net = workload.make_net();
  const auto own_optimizer = make_optimizer(workload, *net);
  auto [model, optimizer] = accelerator.prepare(net, *own_optimizer);
  const auto prepared_step = [&, &model = model, &optimizer = optimizer] {
    accelerator.backward(workload.loss(model(batch.input), batch.target));
    optimizer.step();
    optimizer.zero_grad();
  };
  Spent spent;
  const auto watched_step = [&] {
    const auto before = accelerator.gradient_times();
    prepared_step();
    spent.add(before, accelerator.gradient_times());
  };

  const bool is_alone = accelerator.num_processes() == 1;
  auto result =
      is_alone ? bare_step.compare("step", prepared_step, plan) : bare_step.compare("step", watched_step, plan);
  if (!is_alone) add_times(accelerator, spent, result);
  accelerator.free_memory();
  return result;
}

}  // namespace

std::vector<Result> step(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  return time_workloads(time_prepared, accelerator, plan, selection);
}

}  // namespace hortator::bench

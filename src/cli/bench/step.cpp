#include <ATen/ops/full.h>

#include <hortator/random.hpp>
#include <vector>

#include "cli/bench/bare_step.hpp"

namespace hortator::cli::bench {
namespace {

// What each step of this rank spent on keeping the ranks together.
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

double over_ranks(Accelerator& accelerator, double seconds, Reduce operation) {
  return accelerator.reduce(at::full({}, seconds, at::kDouble), operation).item<double>();
}

// What others wait longer than the rank that waits least, they wait for that one's own computing.
void tell(Accelerator& accelerator, const Spent& spent, Result& result) {
  result.copying_s = over_ranks(accelerator, median(spent.copying), Reduce::max);
  result.reducing_s = over_ranks(accelerator, median(spent.reducing), Reduce::max);
  result.waiting_s = over_ranks(accelerator, median(spent.waiting), Reduce::min);
  result.imbalance_s = over_ranks(accelerator, median(spent.waiting), Reduce::max) - result.waiting_s;
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
  if (!is_alone) tell(accelerator, spent, result);
  accelerator.free_memory();
  return result;
}

}  // namespace

std::vector<Result> step(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  return time_workloads(time_prepared, accelerator, plan, selection);
}

}  // namespace hortator::cli::bench

#include <ATen/ops/full.h>

#include <hortator/random.hpp>

#include "cli/bench/bare_step.hpp"

namespace hortator::cli::bench {
namespace {

double working_s(const GradientTimes& times) { return times.copying + times.starting + times.buffers; }

double over_ranks(Accelerator& accelerator, double seconds, Reduce operation) {
  return accelerator.reduce(at::full({}, seconds, at::kDouble), operation).item<double>();
}

Result time_prepared(Accelerator& accelerator, const Plan& plan, const Workload& workload) {
  set_seed(1, {.device_specific = true});
  const auto batch = make_batch(accelerator, workload);
  BareStep bare_step(accelerator, workload, batch);

  auto net = workload.make_net();
  const auto own_optimizer = make_optimizer(workload, *net);
  auto [model, optimizer] = accelerator.prepare(net, *own_optimizer);
  double ours_steps = 0;
  const auto prepared_step = [&, &model = model, &optimizer = optimizer] {
    accelerator.backward(workload.loss(model(batch.input), batch.target));
    optimizer.step();
    optimizer.zero_grad();
    ++ours_steps;
  };

  const auto before = accelerator.gradient_times();
  auto result = bare_step.compare("step", prepared_step, plan);
  const auto after = accelerator.gradient_times();
  const auto worked = (working_s(after) - working_s(before)) / ours_steps;
  const auto waited = (after.waiting - before.waiting) / ours_steps;
  // What others wait longer than the rank that waits least, they wait for that one's own computing.
  const auto least_waited = over_ranks(accelerator, waited, Reduce::min);
  result.communication_s = over_ranks(accelerator, worked, Reduce::max) + least_waited;
  result.imbalance_s = over_ranks(accelerator, waited, Reduce::max) - least_waited;
  accelerator.free_memory();
  return result;
}

}  // namespace

std::vector<Result> step(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  return time_workloads(time_prepared, accelerator, plan, selection);
}

}  // namespace hortator::cli::bench

#include <hortator/random.hpp>

#include "cli/bench/bare_step.hpp"

namespace hortator::cli::bench {
namespace {

double communicating_s(const GradientTimes& times) {
  return times.copying + times.starting + times.waiting + times.buffers;
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

  const double before = communicating_s(accelerator.gradient_times());
  auto result = bare_step.compare("step", prepared_step, plan);
  result.communication_s = (communicating_s(accelerator.gradient_times()) - before) / ours_steps;
  accelerator.free_memory();
  return result;
}

}  // namespace

std::vector<Result> step(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  return time_workloads(time_prepared, accelerator, plan, selection);
}

}  // namespace hortator::cli::bench

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>

#include <hortator/random.hpp>

#include "cli/bench/bare_step.hpp"

namespace hortator::cli::bench {
namespace {

double over_ranks(Accelerator& accelerator, double seconds, Reduce operation) {
  return accelerator.reduce(at::full({}, seconds, at::kDouble), operation).item<double>();
}

Result time_workload(Accelerator& accelerator, const Plan& plan, const Workload& workload) {
  set_seed(1, {.device_specific = true});
  const auto input = workload.make_input().to(accelerator.device());
  const auto target = workload.make_target().to(accelerator.device());

  BareStep bare_step(accelerator, workload, input, target);

  auto net = workload.make_net();
  const auto own_optimizer = make_optimizer(workload, *net);
  auto [model, optimizer] = accelerator.prepare(net, *own_optimizer);
  double ours_steps = 0;
  const auto prepared_step = [&, &model = model, &optimizer = optimizer] {
    accelerator.backward(workload.loss(model(input), target));
    optimizer.step();
    optimizer.zero_grad();
    ++ours_steps;
  };

  const auto before = accelerator.gradient_times();
  const Sides sides = {
      .ours = prepared_step, .reference = [&] { bare_step(); }, .line_up = [&] { line_up(accelerator); }};
  Result result{.name = "step",
                .params = {{"workload", workload.name},
                           {"ranks", accelerator.num_processes()},
                           {"threads", at::get_num_threads()},
                           {"device", accelerator.device().str()},
                           {"precision", std::string(to_string(accelerator.mixed_precision()))},
                           {"steps", plan.steps}},
                .reference = "bare LibTorch loop on each rank, same optimizer kernel",
                .timing = time_in_pairs(sides, plan)};
  const auto after = accelerator.gradient_times();
  const auto worked =
      (after.copying - before.copying) + (after.starting - before.starting) + after.buffers - before.buffers;
  const auto waited = after.waiting - before.waiting;
  const auto most_worked = over_ranks(accelerator, worked / ours_steps, Reduce::max);
  const auto least_waited = over_ranks(accelerator, waited / ours_steps, Reduce::min);
  // What the others wait longer, they wait for the slowest rank's own computing.
  result.communication_s = most_worked + least_waited;
  result.imbalance_s = over_ranks(accelerator, waited / ours_steps, Reduce::max) - least_waited;
  accelerator.free_memory();
  return result;
}

}  // namespace

std::vector<Result> step(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  std::vector<Result> results;
  for (const auto& workload : selected_workloads(selection))
    results.push_back(time_workload(accelerator, plan, workload));
  return results;
}

}  // namespace hortator::cli::bench

#include <ATen/Parallel.h>

#include <hortator/training/ema.hpp>
#include <hortator/training/random.hpp>

#include "bench/bare_step.hpp"

namespace hortator::bench {
namespace {

Result time_average(Accelerator& accelerator, const Plan& plan, const Workload& workload) {
  set_seed(1, {.device_specific = true});
  const auto batch = make_batch(accelerator, workload);
  auto net = workload.make_net();
  const auto own_optimizer = make_optimizer(workload, *net);
  auto [model, optimizer] = accelerator.prepare(net, *own_optimizer);
  Ema ema(accelerator, model, {.name = workload.name});
  const auto step = [&, &model = model, &optimizer = optimizer] {
    accelerator.backward(workload.loss(model(batch.input), batch.target));
    optimizer.step();
    optimizer.zero_grad();
  };
  const Sides sides = {.ours =
                           [&] {
                             step();
                             ema.update();
                           },
                       .reference = step,
                       .line_up = [&] { line_up(accelerator); }};
  Result result = {.name = "ema",
                   .params = {{"workload", workload.name},
                              {"ranks", accelerator.num_processes()},
                              {"threads", at::get_num_threads()},
                              {"device", accelerator.device().str()},
                              {"steps", plan.steps}},
                   .reference = "the same step without the average",
                   .timing = time_in_pairs(sides, plan)};
  accelerator.free_memory();
  return result;
}

}  // namespace

std::vector<Result> ema(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  return time_workloads(time_average, accelerator, plan, selection);
}

}  // namespace hortator::bench

#include <ATen/Parallel.h>

#include <hortator/error.hpp>
#include <hortator/random.hpp>

#include "base/text.hpp"
#include "cli/bench/bare_step.hpp"

namespace hortator::cli::bench {
namespace {

Result time_captured(Accelerator& accelerator, const Plan& plan, const Workload& workload) {
  set_seed(1);
  const auto input = workload.make_input().to(accelerator.device());
  const auto target = workload.make_target().to(accelerator.device());
  BareStep bare_step(accelerator, workload, input, target);

  auto net = workload.make_net();
  const auto own_optimizer = make_optimizer(workload, *net);
  auto [model, optimizer] = accelerator.prepare(net, *own_optimizer);
  auto step =
      accelerator.capture([&, &model = model, &optimizer = optimizer](const at::Tensor& x, const at::Tensor& y) {
        auto loss = workload.loss(model(x), y);
        accelerator.backward(loss);
        optimizer.step();
        optimizer.zero_grad();
        return loss;
      });
  for (int i = 0; i < 4; ++i) step(input, target);
  if (!step.is_recorded()) {
    throw UsageError({.what = "bench capture cannot compare a recorded step",
                      .why = step.why_not(),
                      .hint = "run it alone on a CUDA device"});
  }
  const Sides sides = {.ours = [&] { step(input, target); },
                       .reference = [&] { bare_step(); },
                       .line_up = [&] { line_up(accelerator); }};
  Result result{.name = "capture",
                .params = {{"workload", workload.name},
                           {"ranks", accelerator.num_processes()},
                           {"threads", at::get_num_threads()},
                           {"device", accelerator.device().str()},
                           {"precision", std::string(to_string(accelerator.mixed_precision()))},
                           {"steps", plan.steps}},
                .reference = "bare LibTorch loop, same optimizer kernel",
                .timing = time_in_pairs(sides, plan)};
  accelerator.free_memory();
  return result;
}

}  // namespace

std::vector<Result> capture(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  std::vector<Result> results;
  for (const auto& workload : selected_workloads(selection))
    results.push_back(time_captured(accelerator, plan, workload));
  return results;
}

}  // namespace hortator::cli::bench

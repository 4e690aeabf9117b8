#include <ATen/Parallel.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/random.hpp>

#include "base/text.hpp"
#include "cli/bench/measurements.hpp"
#include "cli/bench/workloads.hpp"
#include "train/fused_step.hpp"

namespace hortator::cli::bench {
namespace {

constexpr const char* overhead_workload = "mlp-small";

// The small one is timed for what surrounds the arithmetic: the cheapest optimizer would hide nothing of it.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Workload& workload, const Net& net) {
  if (workload.name == overhead_workload) return std::make_unique<torch::optim::AdamW>(net.parameters(), 1e-3);
  return std::make_unique<torch::optim::SGD>(net.parameters(), torch::optim::SGDOptions(1e-3).momentum(0.9));
}

std::vector<Workload> selected(const Selection& selection) {
  std::vector<std::string> names;
  for (const auto& workload : workloads()) names.push_back(workload.name);
  const auto cases = selection.cases.empty() ? std::vector<std::string>{overhead_workload} : selection.cases;
  std::vector<Workload> result;
  for (const auto& name : cases) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      throw UsageError(
          {.what = text::concat("--case ", name, " is no workload"), .hint = text::suggestion(name, names)});
    }
    result.push_back(workloads()[static_cast<std::size_t>(found - names.begin())]);
  }
  return result;
}

Result time_workload(Accelerator& accelerator, const Plan& plan, const Workload& workload) {
  set_seed(1, {.device_specific = true});
  const auto input = workload.make_input().to(accelerator.device());
  const auto target = workload.make_target().to(accelerator.device());

  const auto bare = workload.make_net();
  bare->to(accelerator.device());
  const auto bare_optimizer = make_optimizer(workload, *bare);
  const auto bare_step = [&] {
    workload.loss(bare->forward(input), target).backward();
    // The same arithmetic as the prepared one's: what is compared is the loop around it.
    train::step(*bare_optimizer, train::StepKernel::fused);
    bare_optimizer->zero_grad();
  };

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
      .ours = prepared_step, .reference = bare_step, .line_up = [&] { accelerator.wait_for_everyone(); }};
  Result result{.name = "step",
                .params = {{"workload", workload.name},
                           {"ranks", accelerator.num_processes()},
                           {"threads", at::get_num_threads()},
                           {"device", accelerator.device().str()},
                           {"steps", plan.steps}},
                .reference = "bare LibTorch loop on each rank, same optimizer kernel",
                .timing = time_in_pairs(sides, plan)};
  const auto after = accelerator.gradient_times();
  const auto spent = (after.copying - before.copying) + (after.starting - before.starting) +
                     (after.waiting - before.waiting) + (after.buffers - before.buffers);
  result.communication_s = spent / ours_steps;
  accelerator.free_memory();
  return result;
}

}  // namespace

std::vector<Result> step(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  std::vector<Result> results;
  for (const auto& workload : selected(selection)) results.push_back(time_workload(accelerator, plan, workload));
  return results;
}

}  // namespace hortator::cli::bench

#include "bench/bare_step.hpp"

#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <utility>

#include "step/optimizer/fused_step.hpp"

namespace hortator::bench {

// The small workload measures the overhead around the arithmetic, which the cheapest optimizer shows best.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Workload& workload, const Net& net) {
  if (workload.name == overhead_workload) return std::make_unique<torch::optim::AdamW>(net.parameters(), 1e-3);
  return std::make_unique<torch::optim::SGD>(net.parameters(), torch::optim::SGDOptions(1e-3).momentum(0.9));
}

void line_up(const Accelerator& accelerator) {
  const auto device = accelerator.device();
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
  accelerator.wait_for_everyone();
}

OneBatch make_batch(const Accelerator& accelerator, const Workload& workload) {
  auto input = workload.make_input().to(accelerator.device());
  auto target = workload.make_target().to(accelerator.device());
  return {std::move(input), std::move(target)};
}

BareStep::BareStep(const Accelerator& accelerator, const Workload& workload, OneBatch batch)
    : accelerator_(accelerator), workload_(workload), batch_(std::move(batch)), net_(workload.make_net()) {
  net_->to(accelerator.device());
  optimizer_ = make_optimizer(workload, *net_);
}

void step_bare(const Accelerator& accelerator, const Workload& workload, const OneBatch& batch, Net& net,
               torch::optim::Optimizer& optimizer) {
  at::Tensor output;
  {
    const auto mixed = accelerator.autocast();
    output = net.forward(batch.input);
  }
  workload.loss(output, batch.target).backward();
  step::step(optimizer, step::StepKernel::fused);
  optimizer.zero_grad();
}

void BareStep::operator()() { step_bare(accelerator_, workload_, batch_, *net_, *optimizer_); }

Result BareStep::compare(const std::string& name, const std::function<void()>& ours, const Plan& plan) {
  const Sides sides = {.ours = ours, .reference = [this] { (*this)(); }, .line_up = [this] { line_up(accelerator_); }};
  return {.name = name,
          .params = {{"workload", workload_.name},
                     {"ranks", accelerator_.num_processes()},
                     {"threads", at::get_num_threads()},
                     {"device", accelerator_.device().str()},
                     {"precision", std::string(to_string(accelerator_.mixed_precision()))},
                     {"steps", plan.steps}},
          .reference = "bare LibTorch loop on each rank, same optimizer kernel",
          .timing = time_in_pairs(sides, plan)};
}

std::vector<Result> time_workloads(TimeWorkload time_one, Accelerator& accelerator, const Plan& plan,
                                   const Selection& selection) {
  const auto names = selection.cases.empty() ? std::vector<std::string>{overhead_workload} : selection.cases;
  std::vector<Result> results;
  for (const auto* workload : workloads_named(names)) results.push_back(time_one(accelerator, plan, *workload));
  return results;
}

}  // namespace hortator::bench

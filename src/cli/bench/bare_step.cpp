#include "cli/bench/bare_step.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "base/text.hpp"
#include "train/fused_step.hpp"

namespace hortator::cli::bench {

// The small one is timed for what surrounds the arithmetic: the cheapest optimizer would hide nothing of it.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Workload& workload, const Net& net) {
  if (workload.name == overhead_workload) return std::make_unique<torch::optim::AdamW>(net.parameters(), 1e-3);
  return std::make_unique<torch::optim::SGD>(net.parameters(), torch::optim::SGDOptions(1e-3).momentum(0.9));
}

std::vector<Workload> selected_workloads(const Selection& selection) {
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

void line_up(const Accelerator& accelerator) {
  const auto device = accelerator.device();
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
  accelerator.wait_for_everyone();
}

BareStep::BareStep(const Accelerator& accelerator, const Workload& workload, at::Tensor input, at::Tensor target)
    : accelerator_(accelerator),
      workload_(workload),
      input_(std::move(input)),
      target_(std::move(target)),
      net_(workload.make_net()) {
  net_->to(accelerator.device());
  optimizer_ = make_optimizer(workload, *net_);
}

void BareStep::operator()() {
  at::Tensor output;
  {
    const auto mixed = accelerator_.autocast();
    output = net_->forward(input_);
  }
  workload_.loss(output, target_).backward();
  train::step(*optimizer_, train::StepKernel::fused);
  optimizer_->zero_grad();
}

}  // namespace hortator::cli::bench

#pragma once

#include <torch/optim/optimizer.h>

#include <functional>
#include <hortator/accelerator.hpp>
#include <memory>
#include <string>
#include <vector>

#include "bench/measurements.hpp"
#include "bench/workloads.hpp"

namespace hortator::bench {

inline constexpr const char* overhead_workload = "mlp-small";

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Workload& workload, const Net& net);

/// Waits until all ranks have arrived and their devices are idle. @collective
void line_up(const Accelerator& accelerator);

/// A batch of a workload on the accelerator's device; it differs between ranks.
struct OneBatch {
  at::Tensor input;
  at::Tensor target;
};
OneBatch make_batch(const Accelerator& accelerator, const Workload& workload);

/// A training step in plain LibTorch, on the accelerator's device, in its precision and with the same optimizer kernel,
/// so that only the overhead of the training loop is compared.
void step_bare(const Accelerator& accelerator, const Workload& workload, const OneBatch& batch, Net& net,
               torch::optim::Optimizer& optimizer);

/// A plain LibTorch step with its own net and optimizer.
class BareStep {
 public:
  BareStep(const Accelerator& accelerator, const Workload& workload, OneBatch batch);
  void operator()();

  /// Compares `ours`, the prepared step of the same workload, with this one. @collective
  Result compare(const std::string& name, const std::function<void()>& ours, const Plan& plan);

 private:
  const Accelerator& accelerator_;
  const Workload& workload_;
  OneBatch batch_;
  std::shared_ptr<Net> net_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

/// Times the step of each selected workload, by default of `overhead_workload`. @collective
using TimeWorkload = Result (*)(Accelerator& accelerator, const Plan& plan, const Workload& workload);
std::vector<Result> time_workloads(TimeWorkload time_one, Accelerator& accelerator, const Plan& plan,
                                   const Selection& selection);

}  // namespace hortator::bench

#pragma once

#include <torch/optim/optimizer.h>

#include <functional>
#include <hortator/accelerator.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tools/bench/measurements.hpp"
#include "tools/bench/workloads.hpp"

namespace hortator::tools::bench {

inline constexpr const char* overhead_workload = "mlp-small";

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Workload& workload, const Net& net);

/// All ranks are here, and their devices idle. @collective
void line_up(const Accelerator& accelerator);

/// A batch of a workload, on the accelerator's device; another one on each rank.
struct OneBatch {
  at::Tensor input;
  at::Tensor target;
};
OneBatch make_batch(const Accelerator& accelerator, const Workload& workload);

/// A training step as its author would write it without the library, on the accelerator's device and in its precision,
/// with the optimizer's kernel that the library takes: what is compared is the loop around the arithmetic.
void step_bare(const Accelerator& accelerator, const Workload& workload, const OneBatch& batch, Net& net,
               torch::optim::Optimizer& optimizer);

/// With a net and an optimizer of its own.
class BareStep {
 public:
  BareStep(const Accelerator& accelerator, const Workload& workload, OneBatch batch);
  void operator()();

  /// The prepared step `ours` of the same workload beside this one, as the result `name`. @collective
  Result compare(const std::string& name, const std::function<void()>& ours, const Plan& plan);

 private:
  const Accelerator& accelerator_;
  const Workload& workload_;
  OneBatch batch_;
  std::shared_ptr<Net> net_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

/// Times the step of each workload that was asked for, by default of the one for overhead. @collective
using TimeWorkload = Result (*)(Accelerator& accelerator, const Plan& plan, const Workload& workload);
std::vector<Result> time_workloads(TimeWorkload time_one, Accelerator& accelerator, const Plan& plan,
                                   const Selection& selection);

}  // namespace hortator::tools::bench

#pragma once

#include <torch/optim/optimizer.h>

#include <hortator/accelerator.hpp>
#include <memory>
#include <vector>

#include "cli/bench/measurements.hpp"
#include "cli/bench/workloads.hpp"

namespace hortator::cli::bench {

inline constexpr const char* overhead_workload = "mlp-small";

/// The workloads that were asked for; by default the one for overhead.
std::vector<Workload> selected_workloads(const Selection& selection);
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Workload& workload, const Net& net);

/// All ranks are here, and their devices idle. @collective
void line_up(const Accelerator& accelerator);

/// A training step as its author would write it without the library, on the accelerator's device and in its precision,
/// with the optimizer's kernel that the library takes: what is compared is the loop around the arithmetic.
class BareStep {
 public:
  BareStep(const Accelerator& accelerator, const Workload& workload, at::Tensor input, at::Tensor target);
  void operator()();

 private:
  const Accelerator& accelerator_;
  const Workload& workload_;
  at::Tensor input_;
  at::Tensor target_;
  std::shared_ptr<Net> net_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

}  // namespace hortator::cli::bench

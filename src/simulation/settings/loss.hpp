#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "simulation/sections/section.hpp"

namespace hortator::simulation {

/// Computes one number from outputs, targets and further arguments. Throws UsageError where they do not fit.
using Loss = std::function<at::Tensor(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& targets,
                                      const std::vector<at::Tensor>& arguments)>;

/// How much the losses of ranks weigh in a step.
enum class LossWeighing {
  by_samples,  ///< each sample the same: the losses are means over them
  by_ranks,    ///< each rank with samples the same
  sums         ///< the losses are sums: the gradient is their mean over all ranks
};

/// What `weigh:` of a model's section and the loss's `reduction:` ask for.
LossWeighing read_weighing(const Section& model);

/// Makes the loss that `loss:` of a model's section asks for; mse if there is none. Throws UsageError for an unknown
/// type and for a TorchScript file that cannot be read.
Loss make_loss(const Section& model);

}  // namespace hortator::simulation

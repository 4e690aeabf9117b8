#pragma once

#include <torch/optim/optimizer.h>

#include <vector>

namespace hortator::step {

/// The parameters of all groups, in their order.
inline std::vector<at::Tensor> parameters_of(const torch::optim::Optimizer& optimizer) {
  std::vector<at::Tensor> parameters;
  for (const auto& group : optimizer.param_groups()) {
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
  }
  return parameters;
}

}  // namespace hortator::step

#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace hortator::simulation {

/// Tensors by their roles. The first dimension of each counts samples.
struct TensorBatch {
  std::vector<at::Tensor> inputs = {};
  std::vector<at::Tensor> targets = {};
  std::vector<at::Tensor> outputs = {};
  std::vector<at::Tensor> loss_arguments = {};
  at::Tensor priorities = {};  ///< one number for each sample; undefined if there are none
};

}  // namespace hortator::simulation

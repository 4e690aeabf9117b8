#pragma once

#include <torch/nn/module.h>

#include <cstddef>
#include <string>
#include <vector>

namespace hortator::weights {

/// A parameter or buffer of a module tree.
struct ModuleWeight {
  std::string name = {};
  at::Tensor tensor = {};
  std::size_t first = 0;  ///< index of the first weight with the same memory: its own, or an earlier one (tied)
};

/// Returns them in the order of Python's state_dict(): each module's parameters, its buffers, then its children.
std::vector<ModuleWeight> weights_of(const torch::nn::Module& module);

}  // namespace hortator::weights

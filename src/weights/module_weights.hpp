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
  std::size_t first = 0;  ///< the first of those that are the same elements of the same memory: itself, or before it
};

/// In the order of Python's state_dict(): of each module its parameters, its buffers, then its children.
std::vector<ModuleWeight> weights_of(const torch::nn::Module& module);

}  // namespace hortator::weights

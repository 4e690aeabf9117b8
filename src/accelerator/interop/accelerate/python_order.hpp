#pragma once

#include <torch/optim/optimizer.h>

#include <hortator/training/state_dict.hpp>
#include <string>
#include <vector>

#include "step/moments/optimizer_state.hpp"

/// What a checkpoint says of an optimizer beyond what Hortator needs, so that it can be converted for Python: Python
/// numbers parameters in the order of their groups, and reads the state of one type of optimizer only.
namespace hortator::accelerator {

struct PythonOrder {
  std::string type = {};                              ///< "AdamW"; empty for one that Python does not have
  std::vector<std::vector<std::string>> groups = {};  ///< names of parameters, as moments have them
};

/// Adds the order of optimizer number `index` to the common state. The same on all ranks.
void put_python_order(StateDict& common, std::size_t index, const torch::optim::Optimizer& optimizer,
                      const step::ParameterNames& names);

/// Reads it. Throws UsageError, naming the optimizer, if the checkpoint does not have it.
PythonOrder python_order(const StateDict& values, std::size_t index);

}  // namespace hortator::accelerator

#pragma once

#include <torch/optim/optimizer.h>

#include <hortator/training/state_dict.hpp>
#include <map>
#include <string>

namespace hortator::step {

/// What a parameter is called in a checkpoint: by its name in the model.
using ParameterNames = std::map<const void*, std::string>;  // by TensorImpl

/// Everything that `optimizer` remembers: "groups/<g>/<option>" and "state/<parameter>/<moment>". LibTorch's optimizers
/// field by field; those of the user's own as the bytes of their save(), under "opaque".
StateDict save_optimizer(const torch::optim::Optimizer& optimizer, const ParameterNames& names);

/// Throws where load_optimizer() would find another type of optimizer, other options or shapes. No tensor's values are
/// looked at.
void check_optimizer(const torch::optim::Optimizer& optimizer, const ParameterNames& names, const StateDict& state);

/// Restores it, into an optimizer over the same parameters. Nothing is changed when something does not fit.
void load_optimizer(torch::optim::Optimizer& optimizer, const ParameterNames& names, const StateDict& state);

}  // namespace hortator::step

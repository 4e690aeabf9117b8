#pragma once

#include <torch/optim/optimizer.h>

#include <hortator/training/state_dict.hpp>
#include <map>
#include <string>

namespace hortator::step {

/// The name of each parameter in a checkpoint, which is its name in the model.
using ParameterNames = std::map<const void*, std::string>;  // by TensorImpl

/// The state of `optimizer`: "groups/<g>/<option>" and "state/<parameter>/<moment>". LibTorch's optimizers are saved
/// field by field. An optimizer of the user's own type is saved as the bytes of its save(), under "opaque"; they may be
/// empty.
StateDict save_optimizer(const torch::optim::Optimizer& optimizer, const ParameterNames& names);

/// Whether save_optimizer() writes field by field, not bytes.
bool saves_by_parameter(const torch::optim::Optimizer& optimizer);

/// Whether checkpoints hold nothing of `optimizer`: it is of the user's own type, and its save() writes nothing.
bool saves_nothing(const torch::optim::Optimizer& optimizer);

/// Throws if `state` is of another type of optimizer, or has other options or shapes than `optimizer`. Does not read
/// tensors' values.
void check_optimizer(const torch::optim::Optimizer& optimizer, const ParameterNames& names, const StateDict& state);

/// Loads `state` into an optimizer of the same parameters. Throws as check_optimizer(), and then changes nothing.
void load_optimizer(torch::optim::Optimizer& optimizer, const ParameterNames& names, const StateDict& state);

}  // namespace hortator::step

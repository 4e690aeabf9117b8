#pragma once

#include <torch/nn/module.h>

#include <hortator/training/model_hook.hpp>
#include <string>

namespace hortator::step {

/// Adds a hook to a layer that a torch::nn::Sequential within the module calls. The Sequential then calls an object in
/// the place of the layer, which stays its registered child. Throws UsageError for any other name, with the names that
/// there are. Local.
ModelHookHandle add_layer_hook(torch::nn::Module& module, const std::string& name, ModelHook hook);

}  // namespace hortator::step

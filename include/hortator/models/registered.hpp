#pragma once

#include <torch/nn/modules/container/any.h>

#include <functional>
#include <hortator/export.hpp>
#include <string>

namespace hortator::models {

/// Makes a module for the settings' `type: module`. The module's forward takes one to four tensors and returns one.
using ModuleFactory = std::function<torch::nn::AnyModule()>;

/// Makes a C++ module available to settings by its name: `models: {closure: {type: module, name: NAME}}`. Call it
/// before the model is created, for example before hortator_begin(). Throws UsageError if the name is taken.
HORTATOR_API void register_module(const std::string& name, ModuleFactory factory);

}  // namespace hortator::models

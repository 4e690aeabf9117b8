#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "simulation/settings/section.hpp"

namespace hortator::simulation {

using Activation = at::Tensor (*)(const at::Tensor&);

/// The function that `key` names: relu, gelu, silu, tanh, sigmoid, elu or none. Throws UsageError for another name.
Activation read_activation(const Section& section, const char* key, const std::string& absent);

}  // namespace hortator::simulation

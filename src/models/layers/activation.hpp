#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace hortator::models {

class ConfigFields;

using Activation = at::Tensor (*)(const at::Tensor&);

/// The function that a field of config.json names. Throws UsageError, with the known names, for another name.
Activation activation_of(const ConfigFields& fields, const std::string& name, const std::string& absent);
/// The one with this name; null if there is none.
Activation activation_named(const std::string& name);

}  // namespace hortator::models

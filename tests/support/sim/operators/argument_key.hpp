#pragma once

#include <ATen/core/ivalue.h>

#include <string>

namespace hortator::sim {

/// Appends all of an argument on which shapes can depend. False: it is of a kind that cannot be compared.
bool append_key(std::string& key, const c10::IValue& argument);

}  // namespace hortator::sim

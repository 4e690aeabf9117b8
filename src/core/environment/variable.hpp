#pragma once

#include <optional>
#include <string>

namespace hortator::core {

/// A variable of this process's environment; nothing when it is unset.
std::optional<std::string> variable(const char* name);

}  // namespace hortator::core

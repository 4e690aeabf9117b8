#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hortator::core {

/// All variables that Hortator reads or sets, without the prefix HORTATOR_.
const std::vector<std::string>& known_variables();

/// The names in this process's environment that begin with HORTATOR_, sorted.
std::vector<std::string> own_variables();

/// The known variable that `name` was probably meant for: the nearest one if `name` is none of Hortator's. Empty for a
/// known name, and for one that resembles none: it may belong to another program.
std::string meant_variable(std::string_view name);

}  // namespace hortator::core

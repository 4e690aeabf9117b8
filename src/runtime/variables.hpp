#pragma once

#include <functional>
#include <optional>
#include <string>

namespace hortator::runtime {

/// Looks up an environment variable. What decides by the environment takes this, so that tests can hand in any.
using Variables = std::function<std::optional<std::string>(const char* name)>;

Variables process_variables();

/// The variable as a number from 0 on; nothing when it is unset or something else.
std::optional<int> number(const Variables& variables, const char* name);

}  // namespace hortator::runtime

#pragma once

#include <functional>
#include <optional>
#include <string>

namespace hortator::core {

/// Looks up an environment variable; an empty one is none. What decides by the environment takes this, so that tests
/// can hand in any.
using Variables = std::function<std::optional<std::string>(const char* name)>;

Variables process_variables();

/// The variable as a number from 0 on; nothing when it is unset or something else.
std::optional<int> number(const Variables& variables, const char* name);

/// The variable as a word for yes or no; nothing when it is unset. Throws for other words, with `hint`.
std::optional<bool> yes_or_no(const Variables& variables, const char* name, const char* hint);

}  // namespace hortator::core

#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>

namespace hortator::core {

/// Returns a variable of this process's environment; nothing when it is unset or empty.
std::optional<std::string> variable(const char* name);

/// Looks up an environment variable; an empty one counts as unset. Code that decides by the environment takes this, so
/// that tests can pass any environment.
using Variables = std::function<std::optional<std::string>(const char* name)>;

/// The lookup in this process's environment.
Variables process_variables();

/// A variable that is set.
struct SetVariable {
  std::string name;
  std::string value;
};

/// Returns the first of these variables that is set; nothing when none is. For Hortator's own name, followed by that
/// which Hugging Face Accelerate's launcher sets.
std::optional<SetVariable> first_set(const Variables& variables, std::initializer_list<const char*> names);

/// Returns the variable as a whole number from 0; nothing when it is unset or has any other value.
std::optional<int> number(const Variables& variables, const char* name);

/// Returns the variable as a bool, read by text::parse_bool; nothing when it is unset. Throws UsageError with `hint`
/// for any other value.
std::optional<bool> yes_or_no(const Variables& variables, const char* name, const char* hint);

}  // namespace hortator::core

#pragma once

#include <string>
#include <string_view>

/// Hides what others could act with as the user, for reports and logs.
namespace hortator::core {

/// Whether a variable of this name holds a secret, in any case: a token, a key, a cookie, a password.
bool is_secret(std::string_view name);

/// The parts of names that is_secret() finds, as an extended regular expression: "TOKEN|SECRET|...".
std::string secret_names();

/// The value as it may be shown: "(not shown)" for a secret; addresses lose the user and password in
/// "http://user:password@host".
std::string shown_value(std::string_view name, std::string_view value);

}  // namespace hortator::core

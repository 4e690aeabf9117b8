#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hortator::exported {

/// The value of "L['x']['k'].size()[0]", asked for as ("x.k", 0), and of the number "L['n']", as ("n", nothing).
using GuardedValue = std::function<std::optional<std::int64_t>(const std::string&, std::optional<std::int64_t>)>;

/// Whether a condition in Python's notation, which the exporter took for granted, can hold. True where it has what is
/// not known here, such as floating-point numbers and strides.
bool may_hold(std::string_view guard, const GuardedValue& value);

}  // namespace hortator::exported

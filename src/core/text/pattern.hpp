#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hortator::text {

/// Whether a name is like a pattern, in which * stands for any text, also none.
bool fits_pattern(std::string_view name, std::string_view pattern);

/// A regular expression for names, as a list of patterns with commas between them; nothing for one that has other
/// operators than .* and |.
std::optional<std::string> names_of_expression(std::string_view expression);

}  // namespace hortator::text

#pragma once

#include <optional>
#include <string>

namespace hortator::models {

/// The set of all letters that are equal to one of the set but for their case. Both are in ICU's notation: [...].
/// Nothing where one of these letters is equal to several, as the sharp s is to "ss".
std::optional<std::string> with_both_cases(const std::string& set);

/// Whether two letters in a row may be equal to one character, but for their case, as "st" is to U+FB06.
bool may_be_one_character(char32_t first, char32_t second);

}  // namespace hortator::models

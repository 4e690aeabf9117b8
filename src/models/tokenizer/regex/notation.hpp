#pragma once

#include <string>

/// How ICU writes the elements of regular expressions.
namespace hortator::models {

inline constexpr const char* any_character = "[\\x{0}-\\x{10FFFF}]";
inline constexpr const char* no_character = "[^\\x{0}-\\x{10FFFF}]";
inline constexpr const char* word_character = "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}]";

/// One character, within a set or outside.
std::string icu_character(char32_t c);
/// The characters from `first` to `last`, within a set.
std::string icu_range(char32_t first, char32_t last);

}  // namespace hortator::models

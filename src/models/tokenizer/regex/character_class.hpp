#pragma once

#include <optional>
#include <string>

#include "models/tokenizer/regex/expression_reader.hpp"

namespace hortator::models {

/// The set, in ICU's notation, of a class that begins after its '['. With `ignores_case` it has all letters that are
/// equal but for their case. Throws UsageError for what cannot be translated.
std::string read_class(ExpressionReader& reader, bool ignores_case);

/// The set of an escape such as \w or \p{L}, which begins after its backslash; nothing for other escapes,
/// which are not read.
std::optional<std::string> read_escaped_set(ExpressionReader& reader);

/// The character of an escape such as \n, \x{41} or \], which begins after its backslash. Throws UsageError for others.
char32_t read_escaped_character(ExpressionReader& reader);

}  // namespace hortator::models

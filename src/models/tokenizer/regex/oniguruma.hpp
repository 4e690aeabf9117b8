#pragma once

#include <string>

namespace hortator::models {

/// ICU's form of a regular expression for Oniguruma with its default syntax, as Hugging Face tokenizers use it: both
/// find the same matches. Throws UsageError that names what cannot be translated: references to groups, conditions,
/// absent groups, calls, \G, \K, \R, \X, and what ignores case where one character is equal to several.
std::string icu_expression(const std::string& oniguruma);

}  // namespace hortator::models

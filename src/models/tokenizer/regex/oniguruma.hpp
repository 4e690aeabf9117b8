#pragma once

#include <string>

namespace hortator::models {

/// ICU's form of a regular expression for Oniguruma with its default syntax, as Hugging Face tokenizers use it: both
/// find the same matches. Throws UsageError that names what cannot be translated: references to groups, conditions,
/// absent groups, calls, \G, \K, \R, \X, what ignores case where one character is equal to several, and what may be
/// empty where it is counted or reluctant.
std::string icu_expression(const std::string& oniguruma);

}  // namespace hortator::models

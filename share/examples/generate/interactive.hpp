#pragma once

#include "options.hpp"

namespace generate {

/// Answers each line of the standard input, and writes the answer as it comes. Throws hortator::UsageError on several
/// ranks.
void converse(const Options& options);

}  // namespace generate

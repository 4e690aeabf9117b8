#pragma once

#include "options.hpp"

namespace generate {

/// Prints the perplexity of a text, and the speed of generation, as the options ask for. One rank. @collective
void measure(const Options& options);

}  // namespace generate

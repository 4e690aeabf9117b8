#pragma once

#include "core/environment/environment.hpp"

namespace hortator::runtime {

/// HORTATOR_DEBUG=1 (or another word for yes): every collective is compared, and ranks that wait for each other in
/// different ones are found at once. Throws for words that are neither yes nor no.
bool asked_for_debug_mode(const core::Variables& variables);

}  // namespace hortator::runtime

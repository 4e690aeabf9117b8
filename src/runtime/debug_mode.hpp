#pragma once

#include "core/environment/environment.hpp"

namespace hortator::runtime {

/// Whether HORTATOR_DEBUG is true (1, yes, on, ...). In debug mode the ranks compare every collective, and ranks that
/// wait for each other in different ones are found at once. Throws where it is neither true nor false.
bool asked_for_debug_mode(const core::Variables& variables);

}  // namespace hortator::runtime

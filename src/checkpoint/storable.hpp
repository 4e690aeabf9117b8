#pragma once

#include <hortator/training/state_dict.hpp>

namespace hortator::checkpoint {

/// Throws UsageError, naming the entry, for what cannot be stored: names that are no path, types and layouts that files
/// do not have.
void require_storable(const StateDict& state);

}  // namespace hortator::checkpoint

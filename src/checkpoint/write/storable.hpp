#pragma once

#include <hortator/training/state_dict.hpp>

namespace hortator::checkpoint {

/// Throws UsageError, naming the entry, if the state cannot be stored: for a name that is not a valid path, or a type
/// or layout that the file format does not have.
void require_storable(const StateDict& state);

}  // namespace hortator::checkpoint

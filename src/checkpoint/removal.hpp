#pragma once

#include <filesystem>

namespace hortator::checkpoint {

/// Removes a checkpoint, such that whatever is killed a reader sees all of it or nothing: it is moved aside first. What
/// is not a checkpoint is refused; files that were not saved with it stay where they are. One rank calls it.
void remove(const std::filesystem::path& folder);

/// Finishes what removals that were killed have left in `parent`.
void remove_leftovers(const std::filesystem::path& parent);

}  // namespace hortator::checkpoint

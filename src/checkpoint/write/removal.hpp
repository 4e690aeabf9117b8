#pragma once

#include <filesystem>

namespace hortator::checkpoint {

/// Removes a checkpoint, with what killed saves of its name had moved aside, such that whatever is killed a reader sees
/// all of it or nothing: it is moved aside first. What is not a checkpoint is refused; files that were not saved with
/// it stay where they are. One rank calls it.
void remove(const std::filesystem::path& folder);

enum class Leftovers {
  of_removals,    ///< "checkpoint_1.gone-<id>"
  also_of_saves,  ///< "checkpoint_1.new-<id>": only where nobody saves now
};

/// Finishes what removals, or saves, that were killed have left in `parent`.
void remove_leftovers(const std::filesystem::path& parent, Leftovers which = Leftovers::of_removals);

}  // namespace hortator::checkpoint

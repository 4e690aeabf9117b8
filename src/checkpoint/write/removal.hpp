#pragma once

#include <filesystem>

#include "formats/file/replacement.hpp"

namespace hortator::checkpoint {

/// What belongs to a checkpoint's folder.
formats::Ownership ownership();
/// The same for a save, which keeps a damaged checkpoint that it replaces. `is_damaged`: one that looks whole is known
/// to be.
formats::Ownership ownership_of_replaced(bool is_damaged);

/// Removes a checkpoint and the older ones of its name that killed saves had moved aside. The folder is renamed first,
/// so that readers see all of it or nothing even if the process is killed. Throws FileError if `folder` is not a
/// checkpoint. Leaves files that do not belong to the checkpoint in place. Called by one rank.
void remove(const std::filesystem::path& folder);

enum class Leftovers {
  of_removals,    ///< "checkpoint_1.gone-<id>"
  also_of_saves,  ///< and "checkpoint_1.new-<id>": only while no save is in progress
};

/// Removes what killed removals, or also killed saves, have left in `parent`.
void remove_leftovers(const std::filesystem::path& parent, Leftovers which = Leftovers::of_removals);

}  // namespace hortator::checkpoint

#pragma once

#include <filesystem>
#include <hortator/training/state_dict.hpp>

#include "checkpoint/state_outline.hpp"
#include "mpi/communicator.hpp"

/// What a save requires, checked before any file is created.
namespace hortator::checkpoint {

/// Throws UsageError, naming the entry, if the state cannot be stored: for a name that is not a valid path, or a type
/// or layout that the file format does not have.
void require_storable(const StateDict& state);

/// Returns the full path of `folder` with links resolved, as rank 0 sees it. Throws if the ranks were given different
/// folders.
/// @collective
std::filesystem::path agreed_target(const mpi::Communicator& comm, const std::filesystem::path& folder);

/// Throws, naming an entry and a rank, unless all ranks have the same outline. Rank 0's values are the ones that are
/// written. @collective
void require_same(const mpi::Communicator& comm, const StateOutline& common);

}  // namespace hortator::checkpoint

#pragma once

#include <filesystem>

#include "checkpoint/state_outline.hpp"
#include "mpi/communicator.hpp"

/// What all ranks must agree on before any file is created.
namespace hortator::checkpoint {

/// Returns the full path of `folder` with links resolved, as rank 0 sees it. Throws if the ranks were given different
/// folders.
/// @collective
std::filesystem::path agreed_target(const mpi::Communicator& comm, const std::filesystem::path& folder);

/// Throws, naming an entry and a rank, unless all ranks have the same outline. Rank 0's values are the ones that are
/// written. @collective
void require_same(const mpi::Communicator& comm, const StateOutline& common);

}  // namespace hortator::checkpoint

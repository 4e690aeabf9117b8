#pragma once

#include <filesystem>

#include "checkpoint/outline.hpp"
#include "mpi/communicator.hpp"

/// What all ranks must agree on before a file exists.
namespace hortator::checkpoint {

/// The folder's full path, links resolved, as rank 0 sees it. Throws when the ranks were given different ones.
/// @collective
std::filesystem::path agreed_target(const mpi::Communicator& comm, const std::filesystem::path& folder);

/// Throws, naming an entry and a rank, unless all ranks have the same. What rank 0 has is what is written. @collective
void require_same(const mpi::Communicator& comm, const Outline& common);

}  // namespace hortator::checkpoint

#pragma once

#include <filesystem>
#include <hortator/state_dict.hpp>

#include "mpi/communicator.hpp"

namespace hortator::checkpoint {

struct Snapshot {
  StateDict common = {};  ///< the same names, shapes, types and values on all ranks
  StateDict own = {};     ///< this rank's alone, such as the states of its random number generators
};

/// Writes `snapshot` into `folder`, all ranks together into one file, and returns the folder's full path. What was
/// saved there before is replaced at the very end, by a rename. When anything fails on any rank, all throw the same
/// error, the older checkpoint is what it was and nothing else is left. @collective
std::filesystem::path save(const mpi::Communicator& comm, const std::filesystem::path& folder,
                           const Snapshot& snapshot);

}  // namespace hortator::checkpoint

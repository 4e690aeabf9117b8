#pragma once

#include "checkpoint/write/direct_writer.hpp"
#include "checkpoint/write/save.hpp"

namespace hortator::checkpoint {

/// save() that reports its progress: the direct writer calls `advance`. @collective
std::filesystem::path save(const mpi::Communicator& comm, const std::filesystem::path& folder, const Snapshot& snapshot,
                           const SaveOptions& options, const Advance& advance);

}  // namespace hortator::checkpoint

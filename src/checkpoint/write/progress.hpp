#pragma once

#include <cstdint>
#include <functional>

#include "checkpoint/write/direct_writer.hpp"
#include "checkpoint/write/save.hpp"

/// Saving for those who watch it.
namespace hortator::checkpoint {

/// Told of this rank's bytes of tensors as the direct writer writes them.
using Advance = std::function<void(std::int64_t)>;

Record write_part(const Task& task, const Advance& advance);

/// @collective
std::filesystem::path save(const mpi::Communicator& comm, const std::filesystem::path& folder, const Snapshot& snapshot,
                           const SaveOptions& options, const Advance& advance);

}  // namespace hortator::checkpoint

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "mpi/communicator.hpp"

namespace hortator::checkpoint {

/// Reads every byte of a checkpoint and compares it with the checksums, and what HDF5 finds in the files with the
/// manifest. One line for each thing that is wrong, naming file and dataset. `advance` is told of bytes that were read:
/// together those of all files.
std::vector<std::string> verify(const std::filesystem::path& folder, const Manifest& manifest,
                                const std::function<void(std::int64_t)>& advance);

/// Reads all tensors of a checkpoint, each rank some of them, and with `compare` compares them with their checksums.
/// Throws the first problem on all ranks. @collective
void check_together(const mpi::Communicator& comm, const std::filesystem::path& folder, const Manifest& manifest,
                    bool compare);

}  // namespace hortator::checkpoint

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "mpi/communicator.hpp"

namespace hortator::checkpoint {

/// Reads every byte of a checkpoint and compares it with the checksums, and compares the structure that HDF5 finds in
/// the files with the manifest. Returns one line for each error, naming file and dataset. Calls `advance` with numbers
/// of bytes read, which add up to the size of all files.
std::vector<std::string> verify(const std::filesystem::path& folder, const Manifest& manifest,
                                const std::function<void(std::int64_t)>& advance);

/// Whether a data file has the bytes that were saved. Reads the file, and no other.
bool is_intact(const std::filesystem::path& folder, const Manifest& manifest, std::size_t file);

/// Reads all tensors of a checkpoint, distributed over the ranks, and with `compare` compares them with their
/// checksums. Throws the first error on all ranks. @collective
void verify_on_all_ranks(const mpi::Communicator& comm, const std::filesystem::path& folder, const Manifest& manifest,
                         bool compare);

}  // namespace hortator::checkpoint

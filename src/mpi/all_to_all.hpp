#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mpi/communicator.hpp"

namespace hortator::mpi {

/// Sends `numbers[r]` to each rank r, and returns what each rank has sent to this one. @collective
std::vector<std::uint64_t> all_to_all(const Communicator& comm, const std::vector<std::uint64_t>& numbers);

/// Sends `parts[r]` to each rank r, and returns what each rank has sent to this one. Parts may have any sizes; where
/// those of a rank together exceed `max_bytes_per_call`, they travel in several calls. @collective
std::vector<std::string> all_to_all(const Communicator& comm, const std::vector<std::string>& parts,
                                    std::uint64_t max_bytes_per_call = std::uint64_t{1} << 30);

}  // namespace hortator::mpi

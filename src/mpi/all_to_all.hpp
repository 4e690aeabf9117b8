#pragma once

#include <string>
#include <vector>

#include "mpi/communicator.hpp"

namespace hortator::mpi {

/// Sends `parts[r]` to each rank r, and returns what each rank has sent to this one. Parts may have any sizes; large
/// ones travel in several calls. @collective
std::vector<std::string> all_to_all(const Communicator& comm, const std::vector<std::string>& parts);

}  // namespace hortator::mpi

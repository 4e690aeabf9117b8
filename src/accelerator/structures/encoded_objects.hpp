#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mpi/communicator.hpp"

namespace hortator::accelerator {

/// Returns what each rank's `encode` returns, in rank order. If it throws on one rank, all throw. @collective
std::vector<std::string> gather_encoded(const mpi::Communicator& host, const std::function<std::string()>& encode);
/// Returns what `encode` returns on rank `root`, the only one that calls it. If it throws there, all throw. @collective
std::string broadcast_encoded(const mpi::Communicator& host, const std::function<std::string()>& encode, int root);

}  // namespace hortator::accelerator

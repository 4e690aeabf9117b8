#pragma once

#include <span>

#include "mpi/communicator.hpp"

namespace hortator::step {

/// Rank 0's, when all ranks brought the same metric (but for rounding); throws, naming those that did not. Pure.
double agreed_metric(std::span<const double> by_rank);

/// The same of what the ranks bring; all throw together. @collective One all-gather of 8 bytes a rank.
double agree_on_metric(const mpi::Communicator& host, double metric);

}  // namespace hortator::step

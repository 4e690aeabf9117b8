#pragma once

#include <span>

#include "mpi/communicator.hpp"

namespace hortator::step {

/// Rank 0's metric if all ranks have the same up to rounding. Otherwise throws and names the ranks that differ. Pure.
double agreed_metric(std::span<const double> by_rank);

/// The same for the metrics of all ranks; all ranks throw together. One all-gather of 8 bytes for each rank.
/// @collective
double agree_on_metric(const mpi::Communicator& host, double metric);

}  // namespace hortator::step

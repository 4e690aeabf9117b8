#pragma once

#include <cstdint>

#include "mpi/communicator.hpp"
#include "simulation/run_buffer.hpp"

namespace hortator::simulation {

/// Moves all samples of the buffers `from` to the buffers `to` of other ranks, in equal parts. Both may be null.
/// Returns how many have moved. Throws UsageError on all ranks, and leaves the samples where they are, if they do not
/// fit, or if the buffers have not moved samples equally often before: their checkpoints are then of different moments.
/// @collective
std::int64_t share_samples(const mpi::Communicator& comm, RunBuffer* from, RunBuffer* to);

}  // namespace hortator::simulation

#pragma once

#include "mpi/communicator.hpp"
#include "simulation/training/trained_model.hpp"

namespace hortator::simulation {

/// Copies the weights and buffers of `from`, which must be the same on all ranks that have one, to `to` on all ranks
/// that have one. Both may be null. Throws UsageError on all ranks if the models do not fit. @collective
void share_weights(const mpi::Communicator& comm, const TrainedModel* from, TrainedModel* to);

}  // namespace hortator::simulation

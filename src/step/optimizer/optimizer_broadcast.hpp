#pragma once

#include <torch/optim/optimizer.h>

#include "mpi/communicator.hpp"
#include "step/optimizer/optimizer_state.hpp"

namespace hortator::step {

/// Gives all ranks the state and options of `root`'s optimizer, which has the same parameters. @collective
void broadcast_optimizer(torch::optim::Optimizer& optimizer, const ParameterNames& names, const mpi::Communicator& host,
                         int root);

}  // namespace hortator::step

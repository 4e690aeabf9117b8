#pragma once

#include <torch/nn/module.h>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::train {

/// Parameters that were not made yet (DeferredConstruction) are made, one after the other, or left to somebody else.
enum class Unmade { made, left };

/// Gives all ranks rank 0's parameters and buffers. Modules that differ in names, shapes or types, or in what was made,
/// are an error on all ranks. @collective
void replicate(torch::nn::Module& module, comm::Communicator& communicator, const mpi::Communicator& host,
               Unmade unmade = Unmade::made);

/// All ranks get `root`'s parameters. @collective
void broadcast_parameters(const torch::nn::Module& module, comm::Communicator& communicator, int root,
                          Unmade unmade = Unmade::made);

}  // namespace hortator::train

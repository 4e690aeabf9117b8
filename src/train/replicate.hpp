#pragma once

#include <torch/nn/module.h>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::train {

/// Gives all ranks rank 0's parameters and buffers. Modules that differ in names, shapes or types are an error on all
/// ranks. @collective
void replicate(torch::nn::Module& module, comm::Communicator& communicator, const mpi::Communicator& host);

/// All ranks get `root`'s parameters. @collective
void broadcast_parameters(const torch::nn::Module& module, comm::Communicator& communicator, int root);

}  // namespace hortator::train

#pragma once

#include <torch/nn/module.h>

#include <optional>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::parallel {

/// Parameters that were not made yet (DeferredConstruction) are made, one after the other, or left to somebody else.
enum class Unmade { made, left };

/// Gives all ranks rank 0's parameters and buffers. Modules that differ in names, shapes or types, or in what was made,
/// are an error on all ranks. @collective
void replicate(torch::nn::Module& module, comm::Communicator& communicator, const mpi::Communicator& host,
               Unmade unmade = Unmade::made, std::optional<c10::Device> device = {});

/// All ranks get `root`'s parameters. Those that are not on the communicator's `device` travel through it, one after
/// the other; nothing: they are. @collective
void broadcast_parameters(const torch::nn::Module& module, comm::Communicator& communicator, int root,
                          Unmade unmade = Unmade::made, std::optional<c10::Device> device = {});

/// All ranks get `root`'s tensor, wherever it is, through this device. @collective
void broadcast_through(c10::Device device, const at::Tensor& tensor, comm::Communicator& communicator, int root);

}  // namespace hortator::parallel

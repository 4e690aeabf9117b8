#pragma once

#include <torch/nn/module.h>

#include <optional>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::parallel {

/// Gives all ranks rank 0's parameters and buffers, as broadcast_parameters(). Throws on all ranks if modules differ in
/// names, shapes or types, or in what is deferred. @collective
void replicate(torch::nn::Module& module, comm::Communicator& communicator, const mpi::Communicator& host,
               std::optional<c10::Device> device = {});

/// Gives all ranks `root`'s parameters, except those whose construction is deferred (DeferredConstruction): these stay
/// as they are. Parameters that are not on the communicator's `device` travel through it, one after the other; without
/// a `device`, all are on it. @collective
void broadcast_parameters(const torch::nn::Module& module, comm::Communicator& communicator, int root,
                          std::optional<c10::Device> device = {});

/// Gives all ranks `root`'s tensor, on whatever device it is, through `device`. @collective
void broadcast_through(c10::Device device, const at::Tensor& tensor, comm::Communicator& communicator, int root);

}  // namespace hortator::parallel

#pragma once

#include <torch/nn/module.h>

#include <optional>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::parallel {

/// Whether parameters whose construction is deferred (DeferredConstruction) are made, one after the other, or left.
enum class DeferredParameters { make, leave };

/// Gives all ranks rank 0's parameters and buffers. Throws on all ranks if modules differ in names, shapes or types, or
/// in what is deferred. @collective
void replicate(torch::nn::Module& module, comm::Communicator& communicator, const mpi::Communicator& host,
               DeferredParameters deferred = DeferredParameters::make, std::optional<c10::Device> device = {});

/// Gives all ranks `root`'s parameters. Parameters that are not on the communicator's `device` travel through it, one
/// after the other; without a `device`, all are on it. @collective
void broadcast_parameters(const torch::nn::Module& module, comm::Communicator& communicator, int root,
                          DeferredParameters deferred = DeferredParameters::make,
                          std::optional<c10::Device> device = {});

/// Gives all ranks `root`'s tensor, on whatever device it is, through `device`. @collective
void broadcast_through(c10::Device device, const at::Tensor& tensor, comm::Communicator& communicator, int root);

}  // namespace hortator::parallel

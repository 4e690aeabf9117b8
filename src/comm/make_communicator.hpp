#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <memory>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

enum class Checks { off, on };

/// The back end for tensors on `device` over the ranks of `world`, or an error that says why there is none. `patience`:
/// how long ranks wait for each other to connect, where the back end connects by itself (NCCL). @collective
std::unique_ptr<Communicator> make_communicator(const mpi::Communicator& world, c10::Device device, Checks checks,
                                                std::chrono::milliseconds patience = std::chrono::minutes(10));

/// HORTATOR_DEBUG=1 (or another word for yes) asks for checks. Throws for words that are neither yes nor no.
Checks checks_from_environment();

}  // namespace hortator::comm

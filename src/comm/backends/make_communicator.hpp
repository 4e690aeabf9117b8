#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <memory>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

enum class Checks { off, on };

/// A communicator for tensors on `device` over the ranks of `world`: the chosen back end (choose_backend) with its
/// decorators. Throws the reason where no back end can be used. `patience` limits how long the ranks wait for each
/// other to connect, where the back end makes connections of its own (NCCL). @collective
std::unique_ptr<Communicator> make_communicator(const mpi::Communicator& world, c10::Device device, Checks checks,
                                                std::chrono::milliseconds patience = std::chrono::minutes(10));

/// Checks::on where HORTATOR_DEBUG is true (1, yes, on, ...). Throws where it is neither true nor false.
Checks checks_from_environment();

}  // namespace hortator::comm

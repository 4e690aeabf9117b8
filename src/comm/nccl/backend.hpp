#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <memory>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

/// With NCCL ranks that make different calls wait for each other for ever.
inline constexpr Traits nccl_traits = {.queues_on_device = true, .device = c10::kCUDA};

/// A communicator over NCCL for tensors on `device`, one device a rank. MPI carries the ids by which the ranks find
/// each other, never a tensor. Throws where NCCL cannot work: it is not in this build or too old, or ranks share a
/// device or have slices of one. `patience` limits how long ranks wait for each other to connect: at the start, in a
/// split, and at the first operation of a kind. Large jobs have taken minutes. @collective
std::unique_ptr<Communicator> make_nccl_communicator(const mpi::Communicator& world, c10::Device device,
                                                     std::chrono::milliseconds patience);

}  // namespace hortator::comm

#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <memory>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

/// NCCL itself lets ranks that differ wait for each other.
inline constexpr Traits nccl_traits = {.device = c10::kCUDA};

/// Tensors on `device`, one device a rank, over NCCL. MPI carries the ids by which the ranks find each other, never a
/// tensor. Throws where NCCL cannot work: not in this build, too old, ranks that share a device or have slices of one.
/// `patience` is how long ranks wait for each other to connect: at the start, in a split, at the first operation of a
/// kind. Large jobs have been seen to take minutes. @collective
std::unique_ptr<Communicator> make_nccl_communicator(const mpi::Communicator& world, c10::Device device,
                                                     std::chrono::milliseconds patience);

}  // namespace hortator::comm

#pragma once

#include <ATen/core/Tensor.h>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::parallel {

/// Some ranks of a run, as the functions see them that work over these ranks: collectives, this rank's index, their
/// number. All members have the same ranks in the same order.
struct RankGroup {
  comm::Communicator& on_device;  ///< for tensors on the run's device
  comm::Communicator& on_cpu;     ///< for tensors on the CPU; on_device if that is the device
  const mpi::Communicator& host;  ///< for host values

  int index() const { return host.rank(); }  ///< this rank's
  int size() const { return host.size(); }
  /// The communicator for the device that the tensor is on; that of the CPU for undefined tensors.
  comm::Communicator& communicator_of(const at::Tensor& tensor) const {
    return tensor.defined() && !tensor.is_cpu() ? on_device : on_cpu;
  }
};

}  // namespace hortator::parallel

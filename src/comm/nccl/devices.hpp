#pragma once

#include <span>
#include <string>

namespace hortator::comm {

/// A rank's device.
struct NcclDevice {
  int rank = 0;
  std::string uuid = {};  ///< identifies the hardware, however CUDA_VISIBLE_DEVICES numbers it
  std::string name = {};  ///< "NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB MIG 1g.10gb"
  int openable = 0;       ///< devices of the node that the rank may open; 0: unknown
};

/// Checks that the ranks of one node can use these devices in NCCL. Throws where they cannot. Returns a warning if they
/// have no direct links, which NCCL does not notice; otherwise an empty string. A rank need not see the other ranks'
/// devices as long as it may open them.
std::string check_nccl_devices(std::span<const NcclDevice> of_node);

}  // namespace hortator::comm

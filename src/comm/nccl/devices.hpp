#pragma once

#include <span>
#include <string>

namespace hortator::comm {

/// What a rank says of its device.
struct NcclDevice {
  int rank = 0;
  std::string uuid = {};  ///< names the hardware, whatever CUDA_VISIBLE_DEVICES made of its number
  std::string name = {};  ///< "NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB MIG 1g.10gb"
  int openable = 0;       ///< devices of the node that the rank may open; 0: unknown
};

/// May the ranks of one node use these devices in NCCL? Throws where they may not; returns what they should be warned
/// of, or nothing. What each rank sees of the others' devices does not matter, as long as it may open them.
std::string check_nccl_devices(std::span<const NcclDevice> of_node);

}  // namespace hortator::comm

#pragma once

#include <hortator/state.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hortator::runtime {

/// What decides between CPU and CUDA on a rank.
struct DeviceRequest {
  bool cpu_asked = false;                       ///< by the program: StateOptions::cpu
  std::optional<std::string> environment = {};  ///< HORTATOR_DEVICE: "cpu" or "cuda"
  bool is_built = false;                        ///< is there CUDA in this build
  int visible = 0;                              ///< CUDA devices that this rank sees
};

/// CUDA where there is a device, unless the CPU is asked for. CUDA that is asked for and cannot be had throws.
bool wants_cuda(const DeviceRequest& request);

/// The number, among the devices that it sees, of the device of the rank `local_rank`: never one that another rank of
/// the node has. Devices are given by UUID, for each rank of the node those that it sees: all ranks may see all of
/// them, or each its own.
int pick_device(std::span<const std::vector<std::string>> visible_of_node, int local_rank);

DistributedType distributed_type(bool cuda, int ranks);

}  // namespace hortator::runtime

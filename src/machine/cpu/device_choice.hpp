#pragma once

#include <hortator/state.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/environment/environment.hpp"

namespace hortator::machine {

/// What decides between CPU and CUDA on a rank.
struct DeviceRequest {
  bool cpu_asked = false;                       ///< by the program (StateOptions::cpu), or by HORTATOR_CPU
  std::optional<std::string> environment = {};  ///< HORTATOR_DEVICE: "cpu" or "cuda"
  bool is_built = false;                        ///< is there CUDA in this build
  int visible = 0;                              ///< CUDA devices that this rank sees
};

/// HORTATOR_CPU=1, as `hortator launch --cpu` says it.
bool asked_for_cpu(const core::Variables& variables);

/// CUDA where there is a device, unless the CPU is asked for. CUDA that is asked for and cannot be had throws.
bool wants_cuda(const DeviceRequest& request);

/// May several ranks have one device? Only where it is asked for, by HORTATOR_SHARE_DEVICES=1: their tensors then
/// travel through the host.
enum class Sharing { refused, allowed };
Sharing asked_sharing(const core::Variables& variables);

/// The number, among the devices that it sees, of the device of the rank `local_rank`: never one that another rank of
/// the node has, or with sharing one that as few as possible have. Devices are given by UUID, for each rank of the node
/// those that it sees: all ranks may see all of them, or each its own.
int pick_device(std::span<const std::vector<std::string>> visible_of_node, int local_rank,
                Sharing sharing = Sharing::refused);

DistributedType distributed_type(bool cuda, int ranks);

}  // namespace hortator::machine

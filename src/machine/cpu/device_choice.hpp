#pragma once

#include <hortator/state.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/environment/environment.hpp"
#include "machine/device/device.hpp"

namespace hortator::machine {

/// The inputs for the choice between CPU and accelerator on a rank.
struct DeviceRequest {
  bool cpu_asked = false;                       ///< by the program (StateOptions::cpu), or by HORTATOR_CPU
  std::optional<std::string> environment = {};  ///< HORTATOR_DEVICE: "cpu" or a kind's name
  const DeviceKind* kind = nullptr;             ///< accelerator_kind()
  std::size_t visible = 0;                      ///< devices that this rank sees
};

/// Whether HORTATOR_CPU=1 is set, as by `hortator launch --cpu`, or else Accelerate's ACCELERATE_USE_CPU=1.
bool asked_for_cpu(const core::Variables& variables);

/// Whether to use the accelerator: yes if there is a device, unless the CPU is requested. Throws UsageError when a kind
/// is requested but not available.
bool wants_accelerator(const DeviceRequest& request);

/// Whether several ranks may use one device: only with HORTATOR_SHARE_DEVICES=1. Their tensors are then sent through
/// the host.
enum class Sharing { refused, allowed };
Sharing asked_sharing(const core::Variables& variables);

/// Picks the device of the rank `local_rank`, as an index into the devices that the rank sees. No other rank of the
/// node gets it; with sharing, as few as possible do. Devices are given by UUID, for each rank of the node those that
/// it sees: all of them, or only its own. Throws UsageError when there are too few devices.
int pick_device(const DeviceKind& kind, std::span<const std::vector<std::string>> visible_of_node, int local_rank,
                Sharing sharing = Sharing::refused);

DistributedType distributed_type(c10::Device device, int ranks);

}  // namespace hortator::machine

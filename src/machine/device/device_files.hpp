#pragma once

#include <filesystem>

namespace hortator::machine {

/// The number of the node's NVIDIA devices that this process may open, independent of CUDA_VISIBLE_DEVICES: fewer than
/// exist if the scheduler has put it into a device cgroup. 0 if there are no device files.
int openable_devices(const std::filesystem::path& folder = "/dev");

}  // namespace hortator::machine

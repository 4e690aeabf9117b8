#pragma once

#include <filesystem>

namespace hortator::machine {

/// How many of the node's NVIDIA devices this process is allowed to open, whatever CUDA_VISIBLE_DEVICES says: fewer
/// than there are where the scheduler has put it into a device cgroup. 0 where devices have no such files.
int openable_devices(const std::filesystem::path& folder = "/dev");

}  // namespace hortator::machine

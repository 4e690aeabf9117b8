#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "machine/cpu/cpu_set.hpp"

namespace hortator::machine {

/// Where a device of the node's PCI tree is, as the kernel tells it.
struct DevicePlace {
  std::optional<int> numa_node = {};  ///< nothing: the node has one memory, or its firmware does not tell
  CpuSet cpus = {};                   ///< those beside it; none: not known
  std::string network = {};  ///< the nearest device of a network ("mlx5_0", "cxi0"), which is of the fabric where there
                             ///< is one; empty: none

  friend bool operator==(const DevicePlace&, const DevicePlace&) = default;
};

/// `pci` is the device's address, "0000:3b:00.0"; `sys` is where sysfs is. Nothing there is no error: containers hide
/// it.
DevicePlace find_place(const std::string& pci, const std::filesystem::path& sys = "/sys");

/// All CPUs of the node that run; none where the kernel does not tell.
CpuSet online_cpus(const std::filesystem::path& sys = "/sys");

/// "NUMA node 1, nearest network device mlx5_2"; for people.
std::string to_string(const DevicePlace& place);

}  // namespace hortator::machine

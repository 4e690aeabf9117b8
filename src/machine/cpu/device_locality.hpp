#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "machine/cpu/cpu_set.hpp"

namespace hortator::machine {

/// Where a device is in the node, as the kernel reports it.
struct DeviceLocality {
  std::optional<int> numa_node = {};  ///< nothing: a single NUMA node, or not reported by the firmware
  CpuSet cpus = {};                   ///< the CPUs close to it; empty: unknown
  std::string network =
      {};  ///< the nearest network device ("mlx5_0", "cxi0"): of the fabric if there is one; empty: none

  friend bool operator==(const DeviceLocality&, const DeviceLocality&) = default;
};

/// `pci` is the device's address, "0000:3b:00.0"; `sys` is where sysfs is mounted. Returns an empty result when the
/// device is not there: containers hide it.
DeviceLocality find_locality(const std::string& pci, const std::filesystem::path& sys = "/sys");

/// All online CPUs of the node; empty when the kernel does not report them.
CpuSet online_cpus(const std::filesystem::path& sys = "/sys");

/// "NUMA node 1, nearest network device mlx5_2"; for people.
std::string to_string(const DeviceLocality& locality);

}  // namespace hortator::machine

#pragma once

#include <span>
#include <string>

#include "machine/cpu/cpu_set.hpp"

namespace hortator::machine {

/// The CPUs of a rank after taking its device into account.
struct DeviceBinding {
  enum class Outcome {
    unknown,      ///< the CPUs near the device are unknown
    near,         ///< all CPUs of the rank are near the device
    bind,         ///< the caller binds the rank to those of its CPUs that are near the device
    launcher,     ///< the binding by the launcher stays, with some CPUs near the device
    launcher_far  ///< the binding by the launcher stays, with no CPU near the device
  };
  Outcome outcome = Outcome::unknown;
  CpuSet cpus = {};  ///< the rank's CPUs from now on

  friend bool operator==(const DeviceBinding&, const DeviceBinding&) = default;
};

/// Decides whether to bind a rank to the CPUs near its device. `sets_of_node` are the CPUs of the ranks of a node.
/// Ranks count as bound by a launcher if their sets differ, or, for a single rank, if its set is not all of the node
/// (`online`). A user who wants a rank to keep all CPUs binds it with the launcher. Pure.
DeviceBinding bind_to_device(std::span<const CpuSet> sets_of_node, int local_rank, const CpuSet& online,
                             const CpuSet& near_device);

/// Text for the log: "bound to the CPUs beside it". Empty for Outcome::unknown.
std::string to_string(DeviceBinding::Outcome outcome);

}  // namespace hortator::machine

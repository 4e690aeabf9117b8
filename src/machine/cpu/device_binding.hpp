#pragma once

#include <span>
#include <string>

#include "machine/cpu/cpu_set.hpp"

namespace hortator::machine {

/// What becomes of a rank's CPUs for the sake of its device.
struct DeviceBinding {
  enum class Kind {
    unknown,       ///< nobody tells which CPUs are beside the device
    beside,        ///< all of the rank's are
    bind,          ///< the rank is to keep those that are
    launchers,     ///< the launcher has bound the rank, also to others
    launchers_far  ///< the launcher has bound the rank, and none of its CPUs is beside the device
  };
  Kind kind = Kind::unknown;
  CpuSet cpus = {};  ///< the rank's from now on

  friend bool operator==(const DeviceBinding&, const DeviceBinding&) = default;
};

/// `sets_of_node` are the CPUs of the ranks of a node. A launcher has bound them where they differ; a rank that is
/// alone there was bound where it may not use all of the node (`online`). Nobody else binds a rank; who wants it to
/// keep all CPUs says so to the launcher. Pure.
DeviceBinding bind_to_device(std::span<const CpuSet> sets_of_node, int local_rank, const CpuSet& online,
                             const CpuSet& beside_device);

/// "bound to the CPUs beside it"; for people. Empty: there is nothing to say.
std::string to_string(DeviceBinding::Kind kind);

}  // namespace hortator::machine

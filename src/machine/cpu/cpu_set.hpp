#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hortator::machine {

/// Numbers of CPUs (or of ranks), ascending.
using CpuSet = std::vector<int>;

/// The CPUs that this process may run on: what srun or mpirun has bound it to.
CpuSet own_cpu_set();

/// From now on this process runs on `cpus` alone: all its threads that may run on `before` now. False where the kernel
/// does not allow it.
bool bind_own_threads(const CpuSet& before, const CpuSet& cpus);

/// "0-3,8"
std::string to_ranges(const CpuSet& set);
/// The reverse, for texts that to_ranges made.
CpuSet from_ranges(std::string_view text);

}  // namespace hortator::machine

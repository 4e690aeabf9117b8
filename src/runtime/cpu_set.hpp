#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hortator::runtime {

/// Numbers of CPUs (or of ranks), ascending.
using CpuSet = std::vector<int>;

/// The CPUs that this process may run on: what srun or mpirun has bound it to.
CpuSet own_cpu_set();

/// "0-3,8"
std::string to_ranges(const CpuSet& set);
/// The reverse, for texts that to_ranges made.
CpuSet from_ranges(std::string_view text);

}  // namespace hortator::runtime

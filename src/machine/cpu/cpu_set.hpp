#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::machine {

/// CPU numbers (or ranks), ascending.
using CpuSet = std::vector<int>;

/// The CPUs that this process may run on, as bound by srun or mpirun. Throws Error when the kernel does not report
/// them.
CpuSet own_cpu_set();

/// The CPUs that the main thread of another process may run on; nothing if there is no such process.
std::optional<CpuSet> cpu_set_of(int process);

/// Binds this process to `cpus`: this thread and all threads whose CPUs are exactly `before`. Returns false when the
/// kernel refuses.
bool bind_own_threads(const CpuSet& before, const CpuSet& cpus);

/// "0-3,8"
std::string to_ranges(const CpuSet& set);
/// The reverse, for texts that to_ranges() made. Throws Error for other texts.
CpuSet from_ranges(std::string_view text);

}  // namespace hortator::machine

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "machine/cpu/cpu_set.hpp"
#include "mpi/communicator.hpp"

namespace hortator::runtime {

/// The CPUs of a rank and of those around it.
struct CpuUse {
  int threads = 1;  ///< with which the rank computes
  machine::CpuSet own = {};
  std::vector<machine::CpuSet> of_node = {};        ///< of all ranks of the node
  std::optional<machine::CpuSet> of_launcher = {};  ///< of the mpirun that has started the rank, if one has
};

/// What slows a rank down: more threads than it has CPUs, or an mpirun that binds the ranks of a node to less than half
/// of its own CPUs. Empty if neither holds.
std::string cpu_warning(const CpuUse& use);

/// The CPUs of the process that has started this one, if it is a launcher of MPI that binds what it starts.
std::optional<machine::CpuSet> cpus_of_launcher();

/// Logs a warning for the whole job, with one rank as the example, if cpu_warning() has one on some rank; once in a
/// process. @collective
void warn_of_cpus(const mpi::Communicator& comm, const std::string& host, const CpuUse& mine);

}  // namespace hortator::runtime

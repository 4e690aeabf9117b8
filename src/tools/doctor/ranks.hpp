#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "machine/cpu/cpu_set.hpp"
#include "mpi/communicator.hpp"
#include "tools/doctor/finding.hpp"

namespace hortator::tools::doctor {

/// The GPUs of a node and its ranks.
struct DeviceFacts {
  bool is_built = false;  ///< whether Hortator was built with CUDA
  int files = 0;          ///< NVIDIA devices of the node
  int openable = 0;       ///< those that the control group of this rank allows
  int visible = 0;        ///< those that CUDA shows to this rank
  int distinct = 0;       ///< those that CUDA shows to any rank of the node
  int local_ranks = 1;
};
Findings judge(const DeviceFacts& devices);

/// The CPUs on which the ranks of a node may run.
struct BindingFacts {
  std::vector<machine::CpuSet> of_ranks = {};
  int machine_cpus = 1;
};
Findings judge(const BindingFacts& binding);

/// Differences between the nodes' clocks and rank 0's, in seconds.
struct ClockFacts {
  double max_behind = 0;
  double max_ahead = 0;
  std::string worst = "";  ///< host of the largest difference
};
Findings judge(const ClockFacts& clocks);

/// Fast networks, and whether the libraries can use them.
struct FabricFacts {
  std::vector<std::string> devices = {};          ///< "mlx5_0", "cxi0"
  std::optional<bool> mpi_supports_fabrics = {};  ///< whether MPI has UCX or libfabric; nothing: unknown
  bool has_nccl = false;
  bool nccl_plugin = false;                         ///< whether libnccl-net exists
  std::optional<std::uint64_t> locked_memory = {};  ///< ulimit -l; nothing: no limit
};
Findings judge(const FabricFacts& fabric);

/// @collective over `node`
DeviceFacts inspect_devices(const mpi::Communicator& node);
/// @collective over `node`
BindingFacts inspect_binding(const mpi::Communicator& node);
/// @collective
ClockFacts inspect_clocks(const mpi::Communicator& comm);
FabricFacts inspect_fabric();

}  // namespace hortator::tools::doctor

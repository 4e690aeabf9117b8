#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "machine/cpu/cpu_set.hpp"
#include "mpi/communicator.hpp"
#include "tools/doctor/finding.hpp"

namespace hortator::tools::doctor {

/// The GPUs of a node, beside its ranks.
struct Devices {
  bool is_built = false;  ///< has this Hortator CUDA
  int files = 0;          ///< NVIDIA devices of the node
  int openable = 0;       ///< those that this rank's control group lets it open
  int visible = 0;        ///< those that CUDA shows to this rank
  int distinct = 0;       ///< those that CUDA shows to any rank of the node
  int local_ranks = 1;
};
Findings judge(const Devices& devices);

/// Where the ranks of a node may run.
struct Binding {
  std::vector<machine::CpuSet> of_ranks = {};
  int machine_cpus = 1;
};
Findings judge(const Binding& binding);

/// How far the nodes' clocks are from rank 0's, in seconds.
struct Clocks {
  double max_behind = 0;
  double max_ahead = 0;
  std::string worst = "";  ///< its host
};
Findings judge(const Clocks& clocks);

/// Fast networks, and whether the libraries can use them.
struct Fabric {
  std::vector<std::string> devices = {};  ///< "mlx5_0", "cxi0"
  std::optional<bool> mpi_knows = {};     ///< has this MPI UCX or libfabric; nothing: it does not say
  bool has_nccl = false;
  bool nccl_plugin = false;                         ///< is there a libnccl-net
  std::optional<std::uint64_t> locked_memory = {};  ///< ulimit -l; nothing: no limit
};
Findings judge(const Fabric& fabric);

/// @collective over `node`
Devices look_at_devices(const mpi::Communicator& node);
/// @collective over `node`
Binding look_at_binding(const mpi::Communicator& node);
/// @collective
Clocks look_at_clocks(const mpi::Communicator& comm);
Fabric look_at_fabric();

}  // namespace hortator::tools::doctor

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/mpi_flavor.hpp"

/// From what the user wants and where he is to the command that starts the ranks.
namespace hortator::launching {

/// Where the launch happens; whoever asks the machine fills it in.
struct Facts {
  bool in_slurm = false;  ///< inside a Slurm allocation that has nodes for us
  /// The --mpi that srun offers and this MPI understands; nothing: mpirun starts the ranks in the allocation, by
  /// itself.
  std::optional<std::string> srun_mpi = "pmix";
  /// Of that allocation: srun does not take it over from sbatch by itself (since Slurm 22.05).
  std::optional<int> cpus_per_task = {};
  bool in_other_batch_job = false;  ///< PBS, LSF, ...: mpirun learns the nodes and their slots from the scheduler
  std::string pbs_node_file = "";   ///< where the MPI does not speak with PBS and has to be given the nodes
  bool has_pbs_tmrsh = false;
  bool is_root = false;
  std::string mpirun = "mpirun";  ///< the command that starts ranks where srun does not
  MpiFlavor mpi = MpiFlavor::other;
  int mpi_major = 4;
  int cores = 1;             ///< physical cores that this process may use
  bool is_confined = false;  ///< the user confined it to fewer than there are (taskset), which mpirun would not respect
  std::vector<std::string> own_variables = {};  ///< names of the HORTATOR_* that are set here
};

struct Request {
  int ranks = 1;  ///< in total, over all nodes
  std::optional<int> nodes = {};
  std::optional<int> ranks_per_node = {};
  std::optional<int> gpus_per_node = {};  ///< asked of Slurm; every rank sees all of its node's
  std::optional<int> threads = {};
  bool prefix_output = false;
  std::string log_dir = "";
  std::string hostfile = "";
  bool bcast = false;
  bool survives_nodes = false;  ///< a node that is lost ends the step, not the allocation
  std::string program = "";
  std::vector<std::string> arguments = {};
  std::vector<std::string> variables = {};  ///< "NAME=value", for all ranks on all nodes
};

/// The words of the command. On one machine each rank gets cores of its own, as many as go round, because a rank runs
/// as many threads as it has cores; with more ranks than cores they share all of them. UsageError for what the launcher
/// that is here cannot do.
std::vector<std::string> command_line(const Request& request, const Facts& facts);

}  // namespace hortator::launching

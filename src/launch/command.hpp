#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/mpi_flavor.hpp"

/// From what the user wants and where he is to the command that starts the ranks.
namespace hortator::launch {

/// Where the launch happens; whoever asks the machine fills it in.
struct Facts {
  bool in_slurm = false;  ///< inside a Slurm allocation: srun starts the ranks, on all its nodes
  /// Of that allocation: srun does not take it over from sbatch by itself (since Slurm 22.05).
  std::optional<int> cpus_per_task = {};
  bool in_other_batch_job = false;  ///< PBS, LSF, ...: mpirun learns the nodes and their slots from the scheduler
  bool is_root = false;
  MpiFlavor mpi = MpiFlavor::other;
  int cores = 1;             ///< physical cores that this process may use
  bool is_confined = false;  ///< the user confined it to fewer than there are (taskset), which mpirun would not respect
};

struct Request {
  int ranks = 1;  ///< in total, over all nodes
  std::string program = "";
  std::vector<std::string> arguments = {};
  std::vector<std::string> variables = {};  ///< "NAME=value", for all ranks on all nodes
};

/// The words of the command. On one machine each rank gets cores of its own, as many as go round, because a rank runs
/// as many threads as it has cores; with more ranks than cores they share all of them.
std::vector<std::string> command_line(const Request& request, const Facts& facts);

}  // namespace hortator::launch

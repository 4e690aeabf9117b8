#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/mpi_flavor.hpp"

/// Builds the command that starts the ranks.
namespace hortator::launching {

/// The environment of a launch. The caller fills it in.
struct LaunchEnvironment {
  bool in_slurm = false;  ///< inside a Slurm allocation with nodes
  bool in_flux = false;   ///< inside an instance of Flux: `flux run` starts the ranks
  /// The --mpi that both srun and this MPI support; nothing: mpirun starts the ranks in the allocation.
  std::optional<std::string> srun_mpi = "pmix";
  /// From the allocation: since Slurm 22.05, srun does not inherit it from sbatch.
  std::optional<int> cpus_per_task = {};
  bool in_other_batch_job = false;       ///< Flux, PBS, LSF, ...: the launcher gets nodes and slots from the scheduler
  std::string_view batch_title = "PBS";  ///< of that scheduler
  std::string node_file = "";  ///< set if Open MPI has no support for the scheduler and needs the list of nodes
  std::string agent =
      "";  ///< starts Open MPI's daemons on other nodes; empty: there is no command of the scheduler for it
  /// CPUs that PBS has given to all ranks together, and has put into OMP_NUM_THREADS of each: they are divided here.
  std::optional<int> pbs_cpus = {};
  /// The ranks that PBS expects on each of several hosts, where that is the same number for all.
  std::optional<int> slots_of_host = {};
  /// PBS has given a part of this node's CPUs, and does not confine the job to them: mpirun must not bind ranks,
  /// because those of all such jobs would get the same first cores.
  bool shares_node = false;
  bool is_root = false;
  std::string mpirun = "mpirun";  ///< starts the ranks when srun does not
  MpiFlavor mpi = MpiFlavor::other;
  int mpi_major = 4;
  int cores = 1;                                ///< physical cores that this process may use
  int cpus = 1;                                 ///< hardware threads that it may use
  std::optional<int> asked_threads = {};        ///< OMP_NUM_THREADS
  bool has_wait_policy = false;                 ///< the user has chosen how OpenMP threads wait
  bool is_confined = false;                     ///< confined by the user (taskset), which mpirun would ignore
  std::vector<std::string> own_variables = {};  ///< names of the HORTATOR_* variables that are set
};

struct LaunchRequest {
  int ranks = 1;                       ///< in total, over all nodes
  std::string_view one_for_each = "";  ///< "GPU" or "node" if the number of ranks was not given
  std::optional<int> nodes = {};
  std::optional<int> ranks_per_node = {};
  std::optional<int> gpus_per_node = {};  ///< requested from Slurm; every rank sees all of its node's
  std::string gpu_types = "";             ///< "a100:4": they are of these types
  std::optional<int> threads = {};
  bool prefix_output = false;
  std::string log_dir = "";
  std::string hostfile = "";
  std::string hosts = "";                          ///< "n1,n2"
  std::string excluded_hosts = "";                 ///< "n3,n4": for srun, of the allocation
  std::string cpu_bind = "";                       ///< "core": what the user wants instead of the usual binding
  std::string map_by = "";                         ///< mpirun's --map-by
  std::vector<std::string> launcher_options = {};  ///< passed on unchanged; blanks separate their words
  bool bcast = false;
  bool survives_nodes = false;  ///< losing a node ends the step, not the allocation
  std::string program = "";
  std::vector<std::string> arguments = {};
  std::vector<std::string> variables = {};  ///< "NAME=value", for all ranks on all nodes
};

/// Whether a scheduler or a host file provides the CPUs, instead of this machine.
bool has_nodes(const LaunchRequest& request, const LaunchEnvironment& environment);

/// The GPUs of a node as Slurm reads them: "4" or "a100:4".
std::string gpus_text(const LaunchRequest& request);

/// The arguments of the command. On one machine each rank gets an equal number of its own cores, because a rank runs
/// one thread per core; if there are more ranks than cores, they share all cores. Throws UsageError for a request that
/// the launcher cannot fulfil.
std::vector<std::string> command_line(const LaunchRequest& request, const LaunchEnvironment& facts);

}  // namespace hortator::launching

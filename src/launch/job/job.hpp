#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/command.hpp"
#include "launch/job/scheduler.hpp"
#include "launch/job/sweep.hpp"
#include "launch/settings/resources.hpp"
#include "launch/settings/settings.hpp"

/// Job scripts, made from the same settings as a launch.
namespace hortator::launching {

struct Job {
  Scheduler scheduler = Scheduler::slurm;
  std::string name = "";
  LaunchRequest request = {};  ///< with nodes and ranks_per_node
  long long seconds = 3600;
  int warning_seconds = 120;
  int spare_nodes = 0;
  int restarts = 0;
  int requeues = 0;
  std::optional<int> cpus_per_node = {};
  std::string cpus_source = "";          ///< where cpus_per_node comes from: "--cpus-per-node", "sinfo"
  std::optional<ArrayTasks> array = {};  ///< the job is an array, and each task has a run folder of its own
  std::vector<SweepTask> sweep = {};     ///< what each task of the array runs; empty: all run the same
  std::string run_dir = "";              ///< folder for the program's files
  std::string folder = ".";              ///< where relative paths start
  /// Names the folder for the job's own files, such as its output: run_dir/jobs/STAMP, which exists. Empty for a script
  /// that is only printed: each job made of it has a folder of its own.
  std::string stamp = "";
  std::string output = "";  ///< existing folder for the job's output; empty: where the scheduler writes by default
  bool is_chain = false;    ///< a job ends the ones after it when the run has finished, or when it is cancelled
  Settings settings{{}};    ///< for the settings that only directives use
};

/// Throws UsageError for settings that contradict each other.
Job job_of(const Settings& settings, Scheduler scheduler, std::string program, std::vector<std::string> arguments);

/// Makes the job an array with one task for each combination. Throws UsageError if it is an array already.
void make_sweep(Job& job, std::vector<SweepTask> tasks, std::optional<int> at_once);

/// What the job may cost at most, counted with requeues and the other jobs of a chain: "up to 4 x 02:00:00 on 2 nodes =
/// 16 node hours".
std::string budget_of(const Job& job, int chain_length);

/// CPUs of each rank: its threads, or its share of the node's CPUs; nothing if both are unknown.
std::optional<int> cpus_per_rank(const Job& job);

/// The texts in jobs/: the script, the scheduler's part of it, the common part, and the agent with which Open MPI
/// starts its daemons on other hosts.
struct Templates {
  std::string script = "";
  std::string part = "";
  std::string common = "";
  std::string agent = "";
};

/// Renders the script. `environment` describes the nodes, such as their MPI. Throws UsageError for values that a
/// directive must not contain.
std::string render(const Job& job, const LaunchEnvironment& environment, const Templates& templates);

}  // namespace hortator::launching

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/command.hpp"
#include "launch/settings/settings.hpp"

/// Job scripts, made from the same settings as a launch.
namespace hortator::launching {

enum class Scheduler { slurm, pbs };

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
  std::string run_dir = "";  ///< folder for the program's files
  std::string records = "";  ///< folder for the job's own files, such as its output
  Settings settings{{}};     ///< for the settings that only directives use
};

/// Throws UsageError for settings that contradict each other.
Job job_of(const Settings& settings, Scheduler scheduler, std::string program, std::vector<std::string> arguments,
           const std::string& stamp);

/// The texts in jobs/: the scheduler's template and the common part.
struct Templates {
  std::string scheduler = "";
  std::string common = "";
};

/// Renders the script. `environment` describes the nodes, such as their MPI. Throws UsageError for values that a
/// directive must not contain.
std::string render(const Job& job, const LaunchEnvironment& environment, const Templates& templates);

}  // namespace hortator::launching

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/command.hpp"
#include "launch/settings/settings.hpp"

/// A job's script, from the same settings that a launch has.
namespace hortator::launching {

enum class Scheduler { slurm, pbs };

struct Job {
  Scheduler scheduler = Scheduler::slurm;
  std::string name = "";
  Request request = {};  ///< with nodes and ranks_per_node
  long long seconds = 3600;
  int warning_seconds = 120;
  int spare_nodes = 0;
  int restarts = 0;
  int requeues = 0;
  std::optional<int> cpus_per_node = {};
  std::string run_dir = "";  ///< of the program's files
  std::string records = "";  ///< of the job's own: its output above all
  Settings settings{{}};     ///< the fields that only directives have
};

/// UsageError for what contradicts itself.
Job job_of(const Settings& settings, Scheduler scheduler, std::string program, std::vector<std::string> arguments,
           const std::string& stamp);

/// The texts of jobs/: of the scheduler's own template, and of what both have in common.
struct Templates {
  std::string scheduler = "";
  std::string common = "";
};

/// The script. `facts` are the nodes': which MPI is there. UsageError for what must not stand in a directive.
std::string render(const Job& job, const Facts& facts, const Templates& templates);

}  // namespace hortator::launching

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/command.hpp"

/// Keepers: a process on each node of a launch which owns the folder of checkpoints in memory, and removes it when the
/// launcher has ended. Pure functions.
namespace hortator::launching {

/// The names in "n1:2,n2:2".
std::vector<std::string> hosts_of_list(std::string_view hosts);
/// The names in a host file of Open MPI or MPICH ("n1 slots=2", "n1:2"), each once.
std::vector<std::string> hosts_of_file(std::string_view content);

/// The same with the slots that lines name: "n1:2".
std::vector<std::string> entries_of_file(std::string_view content);

/// A command that starts keepers, and how many.
struct KeeperCommand {
  std::vector<std::string> command = {};
  int keepers = 1;
  std::string where = "";  ///< for messages: "this machine", "n2", "the nodes of the allocation"

  friend bool operator==(const KeeperCommand&, const KeeperCommand&) = default;
};

struct KeeperRequest {
  std::vector<std::string> hosts = {};         ///< that the ranks may run on; empty: this machine, or those of srun
  int nodes = 1;                               ///< of a Slurm allocation
  std::string this_host = "";                  ///< its name, which may have a domain
  std::vector<std::string> remote_shell = {};  ///< starts a command on another host: {"ssh"}
  std::vector<std::string> keeper = {};        ///< the command of a keeper on any host
};

/// How the keepers of a launch are started.
std::vector<KeeperCommand> keeper_commands(const LaunchEnvironment& environment, const KeeperRequest& keepers);

}  // namespace hortator::launching

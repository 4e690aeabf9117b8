#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/doctor/finding.hpp"

namespace hortator::tools::doctor {

/// Limits of a process (ulimit); nothing: unlimited.
struct ProcessLimits {
  std::optional<std::uint64_t> open_files = {};
  std::optional<std::uint64_t> processes = {};
  std::optional<std::uint64_t> stack = {};
  std::optional<std::uint64_t> address_space = {};
};

/// Limits of the control group; nothing: unlimited.
struct ControlGroup {
  std::optional<std::uint64_t> memory = {};
  std::optional<double> cpus = {};  ///< CPU time, as a number of CPUs
};

/// A node as one rank sees it.
struct MachineFacts {
  std::string kernel = "";                               ///< "6.1.0-13-amd64"
  int local_ranks = 1;                                   ///< ranks on this node
  std::optional<std::uint64_t> free_shared_memory = {};  ///< in /dev/shm; nothing: it does not exist
  ProcessLimits limits = {};
  bool has_logind = false;      ///< whether systemd-logind manages logins
  std::string remove_ipc = "";  ///< RemoveIPC of logind.conf; empty: not set
  ControlGroup group = {};
  std::uint64_t memory = 0;
  int cpus = 1;
};

Findings judge(const MachineFacts& machine);

MachineFacts inspect_machine(int local_ranks);

/// Parsers for files of the system.
std::optional<double> parse_cpu_max(const std::string& line);  ///< "150000 100000" gives 1.5, "max 100000" nothing
std::string parse_remove_ipc(const std::string& logind_conf);  ///< the value of the last RemoveIPC=

}  // namespace hortator::tools::doctor

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/doctor/finding.hpp"

namespace hortator::tools::doctor {

/// What a process may take, by ulimit; nothing: no limit.
struct Limits {
  std::optional<std::uint64_t> open_files = {};
  std::optional<std::uint64_t> processes = {};
  std::optional<std::uint64_t> stack = {};
  std::optional<std::uint64_t> address_space = {};
};

/// What a control group allows; nothing: no limit.
struct Group {
  std::optional<std::uint64_t> memory = {};
  std::optional<double> cpus = {};  ///< the time of so many
};

/// One node, seen by one rank.
struct Machine {
  std::string kernel = "";                               ///< "6.1.0-13-amd64"
  int local_ranks = 1;                                   ///< ranks of this node
  std::optional<std::uint64_t> free_shared_memory = {};  ///< in /dev/shm; nothing: it is not there
  Limits limits = {};
  bool has_logind = false;      ///< does systemd see to logins
  std::string remove_ipc = "";  ///< RemoveIPC of logind.conf; empty: not said
  Group group = {};
  std::uint64_t memory = 0;
  int cpus = 1;
};

Findings judge(const Machine& machine);

Machine look_at_machine(int local_ranks);

/// The parts of it that read the kernel's own words.
std::optional<double> parse_cpu_max(const std::string& line);  ///< "150000 100000" gives 1.5, "max 100000" nothing
std::string parse_remove_ipc(const std::string& logind_conf);  ///< the last RemoveIPC= that counts

}  // namespace hortator::tools::doctor

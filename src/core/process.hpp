#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Processes, as the kernel describes them in /proc.
namespace hortator::core {

struct ProcessFacts {
  char state = '?';         ///< the character in /proc/PID/stat
  std::uint64_t start = 0;  ///< ticks since the machine started

  bool is_dead() const { return state == 'Z' || state == 'X'; }  ///< its parent has not yet noticed
};

/// Parses the text of /proc/PID/stat. The program's name may contain any characters.
std::optional<ProcessFacts> parse_stat(std::string_view stat);

/// The current facts of a process; empty when there is no such process.
std::optional<ProcessFacts> process_facts(long pid);

/// Identifies this process among all processes of all machines: the machine's boot, the PID namespace, the number and
/// the start time. Empty if /proc does not have them.
std::string process_id();

/// Whether the process with this process_id() has ended. False if that is unknown from here: it runs or ran on another
/// machine or in another PID namespace.
bool has_ended(const std::string& process_id);

}  // namespace hortator::core

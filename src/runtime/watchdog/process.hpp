#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/watchdog/slot.hpp"

/// The state of a process of this node, from the kernel.
namespace hortator::runtime {

struct ProcessFacts {
  char state = '?';         ///< the character in /proc/PID/stat
  std::uint64_t start = 0;  ///< ticks since the machine started
};

/// Parses the text of /proc/PID/stat. The program's name may contain any characters.
std::optional<ProcessFacts> parse_stat(std::string_view stat);

/// The process that traces another by ptrace, from the text of /proc/PID/status; 0: none.
long parse_tracer(std::string_view status);

/// The current facts of a process; empty when there is no such process.
std::optional<ProcessFacts> process_facts(long pid);

/// The state of the process with this number and start time. Never RankLife::left, which only the process itself knows.
RankLife life_of(long pid, std::uint64_t start);

}  // namespace hortator::runtime

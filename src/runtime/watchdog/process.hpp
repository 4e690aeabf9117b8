#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/watchdog/slot.hpp"

/// What the kernel says of a process of this node.
namespace hortator::runtime {

struct ProcessFacts {
  char state = '?';         ///< the letter in /proc/PID/stat
  std::uint64_t start = 0;  ///< ticks since the machine started
};

/// Of the text of /proc/PID/stat, whatever the program is called.
std::optional<ProcessFacts> parse_stat(std::string_view stat);

/// The process that holds another still by ptrace, from the text of /proc/PID/status; 0: none.
long parse_tracer(std::string_view status);

/// Of a process now; nothing when there is none of this number.
std::optional<ProcessFacts> process_facts(long pid);

/// How the process is that had this number and start. Never Life::left, which only the process itself knows.
Life life_of(long pid, std::uint64_t start);

}  // namespace hortator::runtime

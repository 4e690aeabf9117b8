#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/watchdog/slot.hpp"

/// The state of a process of this node, from the kernel.
namespace hortator::runtime {

/// The process that traces another by ptrace, from the text of /proc/PID/status; 0: none.
long parse_tracer(std::string_view status);

/// The state of the process with this number and start time. Never RankLife::left, which only the process itself knows.
RankLife life_of(long pid, std::uint64_t start);

}  // namespace hortator::runtime

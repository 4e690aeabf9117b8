#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace hortator::machine {

/// Bytes that this process can still allocate before the machine or its control group runs out; nothing when the system
/// does not report it. First calls return_freed_memory(), which takes about 0.2 s per GB.
std::optional<std::size_t> available_memory();

/// The line "MemAvailable: N kB" of /proc/meminfo, in bytes.
std::optional<std::size_t> parse_mem_available(std::string_view meminfo);

/// Bytes left in a control group, from its memory.max ("max" or bytes), memory.current and memory.stat. Cached files
/// count as free, because the kernel drops them on demand.
std::optional<std::size_t> left_in_group(std::string_view max, std::string_view current, std::string_view stat);

}  // namespace hortator::machine

#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace hortator::machine {

/// Bytes that this process can still take before the machine or its control group runs out; nothing where the system
/// does not say. What glibc keeps for the main thread is given back first, which takes some 0.2 s a GB.
std::optional<std::size_t> available_memory();

/// The line "MemAvailable: N kB" of /proc/meminfo, in bytes.
std::optional<std::size_t> parse_mem_available(std::string_view meminfo);

/// What a control group leaves, from its memory.max ("max" or bytes), memory.current and memory.stat: cached files give
/// way to whoever needs memory.
std::optional<std::size_t> left_in_group(std::string_view max, std::string_view current, std::string_view stat);

}  // namespace hortator::machine

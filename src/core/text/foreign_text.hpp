#pragma once

#include <cstdint>
#include <string_view>

/// Limits on size and nesting for untrusted or damaged text.
namespace hortator::core {

constexpr std::uint64_t max_record_bytes = std::uint64_t{1} << 24;  ///< of records and configuration files
constexpr int max_record_levels = 64;

/// Whether values of a JSON text are nested at most `levels` deep. Looks only at brackets and strings: the text need
/// not be valid JSON.
bool is_shallow(std::string_view json, int levels = max_record_levels);

}  // namespace hortator::core

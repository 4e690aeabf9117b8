#pragma once

#include <cstdint>
#include <string_view>

/// Texts that somebody else may have written, or that are damaged: never larger or deeper than they can mean something.
namespace hortator::core {

constexpr std::uint64_t max_record_bytes = std::uint64_t{1} << 24;  ///< of what runs and people write down
constexpr int max_record_levels = 64;

/// Whether no value of a JSON text is within more than `levels` others. Looks at brackets alone: the text need not be
/// JSON.
bool is_shallow(std::string_view json, int levels = max_record_levels);

}  // namespace hortator::core

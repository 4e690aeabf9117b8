#pragma once

#include <string_view>

namespace hortator::log {

/// Writes a line with this rank's prefix, on any rank: for callers that have already chosen the rank.
void write_everywhere(std::string_view line);

}  // namespace hortator::log

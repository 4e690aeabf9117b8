#pragma once

#include <string_view>

namespace hortator::log {

/// A line with this rank's prefix, whichever rank it is: for those who have chosen who speaks.
void write_everywhere(std::string_view line);

}  // namespace hortator::log

#pragma once

#include <utility>
#include <vector>

namespace hortator::tools {

constexpr int glyph_rows = 7;  ///< the line that letters stand on is below the last one

/// The dots of a letter, as column (0 to 4) and row (from 0, above). A frame for those that are not in ASCII.
const std::vector<std::pair<int, int>>& dots_of(char c);

}  // namespace hortator::tools

#pragma once

#include <string>
#include <vector>

#include "tools/why/diagnosis.hpp"

namespace hortator::tools {

/// "rank 3", "ranks 0-2, 5"; of many ranges the first eight.
std::string ranks_text(const std::vector<int>& ranks);

/// Lines of at most `columns` each. The first names the run's folder.
std::string why_view(const std::string& folder, const Diagnosis& diagnosis, int columns, bool colour);

}  // namespace hortator::tools

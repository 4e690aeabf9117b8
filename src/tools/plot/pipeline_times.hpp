#pragma once

#include <filesystem>
#include <vector>

#include "tools/charts/chart.hpp"

namespace hortator::tools {

/// Panels of a file that PipelineStepOptions::times has written: the plan, and what was measured. Throws UsageError for
/// other files.
std::vector<Panel> panels_of_times(const std::filesystem::path& file);

}  // namespace hortator::tools

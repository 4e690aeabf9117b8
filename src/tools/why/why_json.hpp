#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/why/diagnosis.hpp"

namespace hortator::tools {

/// The diagnoses of runs, each with its folder, as one JSON object; unknown values are null.
std::string why_json(const std::vector<std::pair<std::string, Diagnosis>>& runs);

}  // namespace hortator::tools

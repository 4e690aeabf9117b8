#pragma once

#include <string>
#include <vector>

#include "tools/watch/watch_view.hpp"

namespace hortator::tools {

/// The state of runs as one JSON object; times are seconds since 1970, unknown values are null.
std::string watch_json(const std::vector<WatchFacts>& runs, double now);

}  // namespace hortator::tools

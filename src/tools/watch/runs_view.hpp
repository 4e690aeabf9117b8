#pragma once

#include <string>
#include <vector>

#include "tools/watch/watch_view.hpp"

namespace hortator::tools {

/// A page with one line for each run: state, progress, value, rate and, for the tasks of a sweep, arguments.
std::string runs_view(const std::vector<WatchFacts>& runs, const ViewOptions& options);

}  // namespace hortator::tools

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/watch/watch_view.hpp"

namespace hortator::tools {

/// A run as one HTML file that needs no server and no other file: state, curves with zoom, a map of the ranks, slow
/// ranks, attempts, checkpoints and settings. While the run is live, a browser reads it again every `refresh` seconds.
/// `settings`: names and values to list. Pure.
std::string watch_page(const WatchFacts& facts, const std::vector<std::pair<std::string, std::string>>& settings,
                       double now, double refresh);

}  // namespace hortator::tools

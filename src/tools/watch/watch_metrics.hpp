#pragma once

#include <string>

#include "tools/watch/watch_view.hpp"

namespace hortator::tools {

/// The figures of a run in the format of Prometheus: all that watch_view() shows.
std::string watch_metrics(const WatchFacts& facts, double now);

}  // namespace hortator::tools

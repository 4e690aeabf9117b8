#pragma once

#include <hortator/tracker.hpp>
#include <memory>
#include <vector>

namespace hortator::observe {

/// UsageError for a name that is none of ours, with the way round for those of the reference; for one that is there
/// twice; for a tracker that is null.
void check(const std::vector<LogWith>& chosen);

/// The trackers that were chosen.
std::vector<std::shared_ptr<Tracker>> make_trackers(const std::vector<LogWith>& chosen);

}  // namespace hortator::observe

#pragma once

#include <hortator/tracker.hpp>
#include <memory>
#include <vector>

namespace hortator::observe {

/// Throws UsageError for an unknown name (with the alternative, for a tracker of Accelerate), for a name that is given
/// twice, and for a null tracker.
void check_trackers(const std::vector<LogWith>& chosen);

/// Makes the chosen trackers. Needs a choice that check_trackers() accepts.
std::vector<std::shared_ptr<Tracker>> make_trackers(const std::vector<LogWith>& chosen);

}  // namespace hortator::observe

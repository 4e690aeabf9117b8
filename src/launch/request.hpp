#pragma once

#include "launch/command.hpp"
#include "launch/settings/settings.hpp"

namespace hortator::launching {

/// The launch request that the settings describe; the caller adds the program and its arguments. `nodes_at_hand` counts
/// where only the ranks of each node are given. Throws UsageError for settings that contradict each other.
LaunchRequest request_of(const Settings& settings, int nodes_at_hand = 1);

}  // namespace hortator::launching

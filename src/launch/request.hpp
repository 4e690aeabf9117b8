#pragma once

#include <optional>

#include "launch/command.hpp"
#include "launch/settings/settings.hpp"

namespace hortator::launching {

/// The launch request that the settings describe; the caller adds the program and its arguments. `nodes_at_hand` counts
/// where only the ranks of each node are given. Throws UsageError for settings that contradict each other.
LaunchRequest request_of(const Settings& settings, int nodes_at_hand = 1);

/// Places the ranks on the `hosts` of a PBS job as it expects them, unless the request says how or has more ranks:
/// Open MPI takes a host that its list names once for one with as many slots as cores.
void place_on_hosts(LaunchRequest& request, std::optional<int> slots_of_host, int hosts);

}  // namespace hortator::launching

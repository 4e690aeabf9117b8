#pragma once

#include "launch/command.hpp"
#include "launch/settings/settings.hpp"

namespace hortator::launching {

/// The launch request that the settings describe; the caller adds the program and its arguments. Throws UsageError for
/// settings that contradict each other.
LaunchRequest request_of(const Settings& settings);

}  // namespace hortator::launching

#pragma once

#include "launch/command.hpp"
#include "launch/settings/settings.hpp"

namespace hortator::launching {

/// What the settings ask for; the program and its arguments are the caller's. UsageError for what contradicts itself.
Request request_of(const Settings& settings);

}  // namespace hortator::launching

#pragma once

#include <filesystem>

#include "launch/command.hpp"
#include "tools/keepers/keepers.hpp"

namespace hortator::tools {

/// Plans the keepers of a launch, with a new folder in `parent`.
KeeperPlan plan_keepers(const launching::LaunchRequest& request, const launching::LaunchEnvironment& environment,
                        const std::filesystem::path& parent);

}  // namespace hortator::tools

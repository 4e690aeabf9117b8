#pragma once

#include <string>
#include <vector>

#include "launch/command.hpp"

namespace hortator::launching {

/// The command, up to the program, that starts the ranks in an instance of Flux. Throws UsageError for a request that
/// `flux run` cannot fulfil.
std::vector<std::string> flux_run(const LaunchRequest& request, const LaunchEnvironment& environment);

}  // namespace hortator::launching

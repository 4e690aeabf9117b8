#pragma once

#include <string>
#include <string_view>

#include "launch/command.hpp"

namespace hortator::launching {

/// The request with the program run under a profiler: "nsys" writes rank_N.nsys-rep into `folder`, "perf" rank_N.data.
/// Throws UsageError if no variable of the launcher with the rank is known, and with --bcast.
LaunchRequest profiled(LaunchRequest request, std::string_view profiler, const std::string& folder,
                       const LaunchEnvironment& environment);

}  // namespace hortator::launching

#pragma once

#include <string>
#include <vector>

#include "core/environment/environment.hpp"
#include "runtime/identity/topology.hpp"

namespace hortator::runtime {

/// What to warn of in the environment of a run: hosts of a PBS job that it does not use, because an mpirun without PBS
/// support sees the first one only, and misspelt variables among `names`. A misspelt variable is no error: `names` may
/// be those of another release, or of a site's own tools.
std::vector<std::string> environment_warnings(const Topology& topology, const core::Variables& variables,
                                              const std::vector<std::string>& names);

/// Logs them, once in a process and on the main rank only.
void warn_of_environment(const Topology& topology);

}  // namespace hortator::runtime

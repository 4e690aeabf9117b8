#pragma once

#include <optional>
#include <string>

#include "launch/command.hpp"

namespace hortator::launching {

/// The variable ("NAME=value") that keeps OpenMP threads from spinning on CPUs that others need; nothing if threads may
/// spin as long as they like. OpenMP reads it when it is loaded, so it must be set before the program starts.
///
/// - Threads may spin where a scheduler or a host file provides the CPUs, and where the user has chosen how to wait.
/// - With more threads than CPUs, they sleep.
/// - Otherwise other processes of the machine may need the CPUs: threads spin for less than a millisecond, then sleep.
std::optional<std::string> thread_waiting(const LaunchRequest& request, const LaunchEnvironment& environment);

}  // namespace hortator::launching

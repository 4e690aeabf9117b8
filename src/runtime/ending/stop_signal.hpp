#pragma once

#include <chrono>
#include <optional>

/// The signals by which a scheduler announces the end of a job. SIGUSR1: minutes are left (with --signal=USR1@300).
/// SIGTERM: seconds are left, then SIGKILL follows.
namespace hortator::runtime {

/// Records SIGUSR1, which then no longer ends the process. Also where it was ignored: a script ignores it to protect
/// itself, not its ranks. A handler of the application stays.
void survive_minutes_signal();

/// The same for SIGTERM. Called once a loop checks for it. A second SIGTERM ends the process. Where the application has
/// a handler for one of the two signals, this code never sees it; rank 0 logs that.
void survive_seconds_signal();

bool minutes_signal_received();
/// The time since the first SIGTERM; empty when there was none.
std::optional<std::chrono::milliseconds> since_seconds_signal();

}  // namespace hortator::runtime

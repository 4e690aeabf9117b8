#pragma once

#include <chrono>
#include <optional>

/// How a scheduler announces that it wants the processors back. SIGUSR1: minutes are left (as asked for by
/// --signal=USR1@300). SIGTERM: seconds are left, and SIGKILL follows.
namespace hortator::runtime {

/// From now on SIGUSR1 is remembered and no longer ends the process, also where it was ignored: that is how a script
/// protects itself, not its ranks. A handler that the application has set stays.
void survive_minutes_signal();

/// The same for SIGTERM: called once a loop looks for it. A second SIGTERM ends the process. Rank 0 says of which of
/// the two the application has a handler, so that it is never heard here.
void survive_seconds_signal();

bool minutes_signal_received();
/// How long ago SIGTERM came first; nothing when it has not.
std::optional<std::chrono::milliseconds> since_seconds_signal();

}  // namespace hortator::runtime

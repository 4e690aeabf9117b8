#pragma once

#include <chrono>
#include <optional>

/// The signals that ask a run to stop. SIGUSR1: minutes are left (with --signal=USR1@300). SIGTERM: seconds are left,
/// then SIGKILL follows. SIGINT, from Ctrl-C: no SIGKILL follows, so that it counts as SIGUSR1.
namespace hortator::runtime {

/// While one of these objects lives, SIGUSR1 is recorded and does not end the process. Also where it was ignored: a
/// script ignores it to protect itself, not its ranks. A handler of the application stays; one that a library of a
/// device or of MPI has installed does not, because the application did not ask for it. The last one puts back what the
/// three signals did before, except for SIGUSR1 in a run that was asked to stop, to which a second one may come late.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
};

/// The same until the process ends, for programs of hortator::run, whose process is the run.
void survive_minutes_signal();

/// The same for SIGTERM and SIGINT, as long as a StopSignals lives; reports to the launcher that the program stops when
/// asked. Called where a loop checks for it. A second signal of the two ends the process. Where the application has a
/// handler for one of the three signals, this code never sees it; rank 0 logs that. A SIGINT that is ignored, as in a
/// background job, stays ignored.
void survive_seconds_signal();

/// Calls `observer` in the signal handler of the first SIGTERM, and no longer lets that end the process on its own
/// where the observer returns true: it then calls end_by_seconds_signal() soon. Where SIGTERM is ignored, or the
/// application has a handler of its own, the observer is not called.
void observe_seconds_signal(bool (*observer)());
/// Ends the process as SIGTERM does, unless a loop checks for the signal. Called after a SIGTERM.
void end_by_seconds_signal();

bool minutes_signal_received();
/// The time since the first SIGTERM; empty when there was none.
std::optional<std::chrono::milliseconds> since_seconds_signal();

}  // namespace hortator::runtime

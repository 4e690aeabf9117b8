#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "launch/launcher_output.hpp"

/// Runs a launcher as a child process until it ends.
namespace hortator::tools {

/// What a launcher is kept from.
struct Supervision {
  /// With a period, a SIGTERM is forwarded as SIGUSR1 first, and as SIGTERM after that period or at the next SIGTERM:
  /// an mpirun kills its ranks one second after a SIGTERM, which is too short to save. (Open MPI can be configured to
  /// wait longer, but then it also waits that long at every failure.)
  std::chrono::seconds grace = {};
  /// Whether the program has begun. SIGUSR1 would end one that has not, so that it is forwarded later, after half a
  /// minute in any case, and a SIGTERM ends the launcher at once. Unset: it has.
  std::function<bool()> has_begun = {};
  /// Whether the program saves and stops when SIGUSR1 asks for it. If set, the launcher gets no SIGINT, which would end
  /// the ranks at once: the first one is forwarded as SIGUSR1 if this returns true; any other one as SIGTERM.
  std::function<bool()> stops_when_asked = {};
  /// Called several times a second while the launcher runs. It must not block or throw.
  std::function<void()> meanwhile = {};
  /// Whether the ranks have recorded why they failed; asked every few seconds. A launcher that still runs a minute
  /// later is killed: an mpirun waits for ever for a host that it cannot reach. Unset: they have not.
  std::function<bool()> has_failed = {};
  /// Receives what the launcher reports on its standard error about the end of the job; null: its standard error is
  /// that of this process.
  launching::LauncherOutput* output = nullptr;
};

struct LauncherEnd {
  /// The exit code, or 128 + the signal that ended it; 130 after a SIGINT, 143 after a SIGTERM before the program
  /// began.
  int code = 0;
  bool was_signalled = false;  ///< this process got SIGINT, SIGTERM or SIGHUP
};

/// Runs `command` to its end. Forwards SIGUSR1, SIGTERM and SIGHUP to it, and a SIGINT that was sent to this process
/// only. The child ends when this process does.
LauncherEnd supervise(const std::vector<std::string>& command, Supervision supervision = {});

/// The signals that ask a launch to stop: SIGUSR1, SIGTERM, SIGHUP, and SIGINT unless it is ignored, as in a background
/// job.
sigset_t stopping_signals();

/// The exit code that the ranks recorded in `folder`, which launchers do not always pass on: 75 for a run that stopped
/// on purpose, that of the failed rank for a failed run. Returns `code` if no record is newer than `since`.
int recorded_code(const std::filesystem::path& folder, std::filesystem::file_time_type since, int code);

/// Whether the ranks recorded in `folder` since then why the run failed.
bool has_failure(const std::filesystem::path& folder, std::filesystem::file_time_type since);

/// Whether the ranks recorded in `folder` since then that the run stopped on purpose, or why it failed.
bool has_record(const std::filesystem::path& folder, std::filesystem::file_time_type since);

}  // namespace hortator::tools

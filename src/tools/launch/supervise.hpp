#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

/// Runs a launcher as a child process until it ends.
namespace hortator::tools {

/// Runs `command`; returns its exit code, or 128 + the signal that ended it. Forwards SIGUSR1, SIGTERM and SIGHUP to
/// it, and a SIGINT that was sent to this process only. The child ends when this process does.
///
/// With a `grace` period, a SIGTERM is forwarded as SIGUSR1 first, and as SIGTERM after that period or at the next
/// SIGTERM: an mpirun kills its ranks one second after a SIGTERM, which is too short to save. (Open MPI can be
/// configured to wait longer, but then it also waits that long at every failure.)
int supervise(const std::vector<std::string>& command, std::chrono::seconds grace = {});

/// The exit code that the ranks recorded in `folder`, which launchers do not always pass on: 75 for a run that stopped
/// on purpose, that of the failed rank for a failed run. Returns `code` if no record is newer than `since`.
int recorded_code(const std::filesystem::path& folder, std::filesystem::file_time_type since, int code);

}  // namespace hortator::tools

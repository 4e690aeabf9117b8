#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

/// Runs a launcher and stays beside it until it has ended.
namespace hortator::tools {

/// The exit code of `words`, or 128 + the signal that ended it. Meanwhile SIGUSR1, SIGTERM and SIGHUP go to it, and so
/// does a SIGINT that was meant for this process alone. It ends with this process.
///
/// With a `grace` SIGTERM comes as SIGUSR1 first, and as SIGTERM only after that time, or when it is sent again: an
/// mpirun kills its ranks a second after it was told to end, which is no time to save. (Open MPI would let itself be
/// told another time, but then waits as long at every failure, too.)
int supervise(const std::vector<std::string>& words, std::chrono::seconds grace = {});

/// The exit code that the ranks' own records give, which launchers do not always hand on: a run that stopped on purpose
/// is 75, a failed one has the guilty rank's. `code` where no record of `folder` is newer than `since`.
int recorded_code(const std::filesystem::path& folder, std::filesystem::file_time_type since, int code);

}  // namespace hortator::tools

#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "launch/launcher_output.hpp"
#include "observe/status/status_record.hpp"
#include "tools/launch/oom_kills.hpp"

/// The report about a rank that a signal has ended: it could not write one itself.
namespace hortator::tools {

struct KilledRankFacts {
  launching::KilledRank killed = {};
  std::optional<observe::RankStatus> status = {};  ///< the last row that the rank wrote in this run
  double now = 0;                                  ///< seconds since 1970
  std::optional<OomKills> oom_before = {};         ///< when the run began
  std::optional<OomKills> oom_now = {};
};

/// "Killed by signal 9 (SIGKILL), often the kernel's out-of-memory killer; ...". Pure.
std::string killed_problem(const KilledRankFacts& facts);

/// The content of failure.json, as runtime::failure_record writes it for errors. Pure.
std::string killed_record(const KilledRankFacts& facts);

/// The last row of that rank in the run that wrote to `folder` since then, if any.
std::optional<observe::RankStatus> last_status(const std::filesystem::path& folder, int rank, double since);

/// Prints one line about the rank and writes failure.json to the run's folder. Without a folder (the program did not
/// get as far), only the line.
void report_killed_rank(const KilledRankFacts& facts, const std::filesystem::path& folder);

}  // namespace hortator::tools

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "observe/status/restart_record.hpp"
#include "runtime/identity/ending_record.hpp"

/// What a run's folder holds about the end of the run.
namespace hortator::tools {

/// A rank that has written a status, but neither that it is over nor why it failed.
struct UnendedRank {
  int rank = 0;
  std::string host = {};
  std::string phase = {};
  std::int64_t updates = 0;
  double time = 0;       ///< of its last status
  bool is_dead = false;  ///< its process has ended; known on its own machine only
};

struct Evidence {
  std::string run_id = {};
  int world = 0;                                        ///< number of ranks; 0: unknown
  int hosts = 1;                                        ///< that have written anything
  std::optional<std::string> outcome = {};              ///< "finished" or "stopped"
  bool is_running = false;                              ///< by its status, which is up to date
  std::vector<runtime::EndingRecord> endings = {};      ///< at most one a rank and reporter
  std::vector<UnendedRank> unended = {};                ///< by rank
  std::optional<observe::RestartRecord> launcher = {};  ///< what `hortator launch` saw of this attempt
  std::vector<observe::RestartRecord> earlier = {};     ///< the failed attempts of the same launch before this one
  std::string mesh = {};                                ///< as in the status of the main rank
  std::int64_t updates = 0;                             ///< the last known of the main rank
  std::int64_t new_updates = 0;                         ///< of them, those of this attempt
  std::int64_t step_tolerance = 0;                      ///< how many updates a status may be behind
};

/// Reads them. `attempt`: what the launcher saw of an attempt that has just ended and is not yet in the folder.
Evidence read_evidence(const std::filesystem::path& folder,
                       const std::optional<observe::RestartRecord>& attempt = std::nullopt);

}  // namespace hortator::tools

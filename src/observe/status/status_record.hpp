#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What a run leaves in its folder for those who watch it: status/ranks.jsonl, in which row i is rank i's, each of so
/// many bytes that every rank can write its own at once, and status/sessions.jsonl, a row each time the run began or
/// went on. Pure; times are seconds since 1970.
namespace hortator::observe {

constexpr auto status_folder = "status";
constexpr auto ranks_file = "ranks.jsonl";
constexpr auto sessions_file = "sessions.jsonl";
constexpr std::size_t row_bytes = 2048;

struct LoopStatus {
  std::string title = "";
  std::int64_t done = 0;
  std::int64_t total = -1;  ///< below 0: not known
  double per_second = 0;    ///< 0: not known yet
};

struct SaveStatus {
  double at = 0;
  double seconds = 0;
  double longest = 0;
};

struct RankStatus {
  std::string run_id = "";
  int rank = 0;
  int world = 1;
  std::string host = "";
  std::string job = "";  ///< "slurm 1234", "pbs 12.server"; empty outside of jobs
  double started = 0;
  double time = 0;   ///< of this row
  double every = 1;  ///< seconds between two rows
  bool is_over = false;
  std::string phase = "";
  std::vector<LoopStatus> loops = {};  ///< the outermost first
  std::int64_t updates = 0;            ///< backward passes that averaged gradients
  double updates_per_second = 0;
  double cpus_used = 0;  ///< since the last row
  int cpus = 1;          ///< that this rank may use
  std::int64_t memory_bytes = 0;
  std::int64_t device_bytes = 0;           ///< that this rank's tensors take of its device
  std::int64_t device_peak_bytes = 0;      ///< the most that they have taken at once
  std::int64_t device_used_bytes = 0;      ///< that all take of it; 0: not known
  std::int64_t device_total_bytes = 0;     ///< 0: not known
  std::optional<double> device_busy = {};  ///< share of the last moments in which it computed
  double communication = 0;                ///< share of the time since the last row
  double data_wait = 0;                    ///< share of the time since the last row
  std::optional<SaveStatus> save = {};
  std::optional<double> deadline = {};                      ///< of the job
  std::vector<std::pair<std::string, double>> values = {};  ///< logged last; the main rank's
  std::string rows = "";                                    ///< the file with all that was logged; the main rank's
};

/// Exactly row_bytes, the last one a newline. What has no room is left out, numbers first.
std::string to_row(RankStatus status);
/// Nothing for what is no row, or one that was written while it was read.
std::optional<RankStatus> parse_status(std::string_view row);

struct Session {
  std::string run_id = "";
  double started = 0;
  int world = 1;
  std::string job = "";
  std::optional<std::int64_t> resumed_after = {};  ///< the last step logged before; nothing: it began anew
};

std::string to_row(const Session& session);
std::optional<Session> parse_session(std::string_view row);

}  // namespace hortator::observe

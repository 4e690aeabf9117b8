#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The files in a run's folder that `hortator watch` reads: status/ranks.jsonl, with the row of rank i at position i,
/// all rows of the same length so that all ranks can write at the same time; and status/sessions.jsonl, with a row for
/// each start or resume. Pure functions; times are seconds since 1970.
namespace hortator::observe {

constexpr auto status_folder = "status";
constexpr auto ranks_file = "ranks.jsonl";
constexpr auto sessions_file = "sessions.jsonl";
constexpr std::size_t row_bytes = 2048;

struct LoopStatus {
  std::string title = "";
  std::int64_t done = 0;
  std::int64_t total = -1;  ///< below 0: unknown
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
  std::string mesh = "";  ///< "replicate 2 x tensor 2"; empty where all ranks get different batches
  std::string host = "";
  std::string process = "";  ///< core::process_id(); empty: unknown
  std::string job = "";      ///< "slurm 1234", "pbs 12.server"; empty outside of jobs
  double started = 0;
  double time = 0;   ///< of this row
  double every = 1;  ///< seconds between two rows
  bool is_over = false;
  std::string phase = "";
  std::vector<LoopStatus> loops = {};  ///< the outermost first
  std::int64_t updates = 0;            ///< backward passes that averaged gradients, also before a resumption
  double updates_per_second = 0;
  double cpus_used = 0;  ///< since the last row
  int cpus = 1;          ///< available to this rank
  std::int64_t memory_bytes = 0;
  std::int64_t device_bytes = 0;           ///< used by this rank's tensors
  std::int64_t device_peak_bytes = 0;      ///< maximum of device_bytes
  std::int64_t device_used_bytes = 0;      ///< used by all processes; 0: unknown
  std::int64_t device_total_bytes = 0;     ///< 0: unknown
  std::optional<double> device_busy = {};  ///< share of the recent time in which it computed
  double communication = 0;                ///< share of the time since the last row
  double data_wait = 0;                    ///< share of the time since the last row
  double joules = 0;                       ///< used by this rank's device, and on the first rank of a node by the node
  std::string energy_source = "";          ///< "powercap + device"; empty: nothing is measured
  std::int64_t samples = 0;                ///< that loaders have handed out to all ranks; main rank only
  std::optional<SaveStatus> save = {};
  std::optional<double> deadline = {};                      ///< of the job
  std::vector<std::pair<std::string, double>> values = {};  ///< last logged values; main rank only
  std::string rows = "";                                    ///< the file with all logged rows; main rank only
};

/// Exactly row_bytes, ending with a newline. If there is not enough room, values are dropped first, then loops and
/// rows.
std::string to_row(RankStatus status);
/// Returns nothing for an invalid row, also one that was written while it was read.
std::optional<RankStatus> parse_status(std::string_view row);

struct Session {
  std::string run_id = "";
  double started = 0;
  int world = 1;
  std::string job = "";
  std::optional<std::int64_t> resumed_after = {};  ///< the last step logged before; nothing: started from scratch
};

std::string to_row(const Session& session);
std::optional<Session> parse_session(std::string_view row);

}  // namespace hortator::observe

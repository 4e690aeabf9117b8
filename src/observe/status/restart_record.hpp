#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The file restarts.jsonl in a run's folder: a row for each failed attempt of a `hortator launch`. Pure functions.
namespace hortator::observe {

constexpr auto restarts_file = "restarts.jsonl";

/// A failed attempt, as the launcher saw it, and what it decided.
struct RestartRecord {
  double time = 0;            ///< seconds since 1970
  std::string launch = {};    ///< the same in all rows of one launch
  std::string run_id = {};    ///< of the attempt; empty: its program did not begin
  int attempt = 1;            ///< from 1
  int exit_code = 0;          ///< of the attempt
  bool was_signalled = {};    ///< the launcher itself got SIGINT, SIGTERM or SIGHUP
  std::string report = {};    ///< of mpirun or srun about the end
  std::string decision = {};  ///< of the rules of `hortator why`: "retry" or "stop"
  std::string rule = {};      ///< that decided
  std::string error_class = {};
  std::string reason = {};
  int rank = -1;  ///< where it began; -1: unknown
  std::string host = {};
  std::string problem = {};
  std::int64_t step = 0;
  std::int64_t step_tolerance = 0;  ///< how many updates `step` may be behind
  /// The number of the newest checkpoint in this node's memory, which grows with each one; -1: none.
  std::int64_t memory_checkpoint = -1;
  std::string signature = {};  ///< of the error, equal for equal ones
  bool is_restarted = false;
  double delay = 0;          ///< seconds before the restart
  std::string refused = {};  ///< why it was not restarted; empty if it was
  /// Hosts that are left out from then on, and those that speak for it and stay, each with the reason.
  std::vector<std::string> left_out = {};
  std::vector<std::string> kept = {};
};

std::string to_row(const RestartRecord& record);
/// Returns nothing for an invalid row.
std::optional<RestartRecord> parse_restart(std::string_view row);

}  // namespace hortator::observe

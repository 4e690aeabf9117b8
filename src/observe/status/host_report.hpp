#pragma once

#include <optional>
#include <string>
#include <string_view>

/// The file hosts.jsonl in the folder `status` of a run's folder: what a run noticed of its hosts while it ran, a row
/// for each time. `hortator launch` leaves hosts out of restarts by it. Pure functions.
namespace hortator::observe {

constexpr auto host_reports_file = "hosts.jsonl";

struct HostReport {
  double time = 0;          ///< seconds since 1970
  std::string run_id = {};  ///< as in the rows of ranks
  std::string host = {};
  std::string sign = {};  ///< "slow", "damaged"
  std::string text = {};  ///< for people

  friend bool operator==(const HostReport&, const HostReport&) = default;
};

constexpr auto slow_host = "slow";        ///< a rank took much longer than the others in several steps
constexpr auto damaged_host = "damaged";  ///< a file of a checkpoint on it had other bytes than were saved

std::string to_row(const HostReport& report);
/// Returns nothing for an invalid row.
std::optional<HostReport> parse_host_report(std::string_view row);

}  // namespace hortator::observe

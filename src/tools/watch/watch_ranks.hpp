#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/text/terminal.hpp"
#include "observe/status/status_record.hpp"

/// A summary of all ranks of a run, and its outliers.
namespace hortator::tools {

/// "36 s", "1 min 41 s"
std::string ago(double seconds);

/// Whether the rank's last status row is overdue.
bool is_silent(const observe::RankStatus& rank, double now);

/// The ranks that the others wait for: those that spend much less time in communication than the median, slowest first.
std::vector<observe::RankStatus> slowest(const std::vector<observe::RankStatus>& ranks);

/// The energy of a run since its last start, by the last status of its ranks.
struct RunEnergy {
  double joules = 0;
  std::int64_t samples = 0;  ///< 0: unknown
  std::string source = "";   ///< empty: nothing is measured
};
RunEnergy energy_of(const std::vector<observe::RankStatus>& ranks);

/// Adds rows for memory, devices, CPUs, gradients, data and energy: the mean, and the rank with the extreme value.
/// `ranks` must not be empty.
void put_use(core::Page& page, const std::vector<observe::RankStatus>& ranks);

/// Adds rows for slow and silent ranks, if there are any.
void put_stragglers(core::Page& page, const std::vector<observe::RankStatus>& ranks, double now);

}  // namespace hortator::tools

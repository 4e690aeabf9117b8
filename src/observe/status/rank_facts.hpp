#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/status/status_record.hpp"

/// What follows from the status rows of a run's ranks. Pure.
namespace hortator::observe {

/// Whether the rank's last status row is overdue.
bool is_silent(const RankStatus& rank, double now);

/// The ranks that the others wait for: those that spend much less time in communication than the median, slowest first.
std::vector<RankStatus> slowest(const std::vector<RankStatus>& ranks);

/// The energy of a run since its last start, by the last status of its ranks.
struct RunEnergy {
  double joules = 0;
  std::int64_t samples = 0;  ///< 0: unknown
  std::string source = "";   ///< empty: nothing is measured
};
RunEnergy energy_of(const std::vector<RankStatus>& ranks);

}  // namespace hortator::observe

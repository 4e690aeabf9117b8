#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hortator::observe {

/// What a run measures of itself for `hortator scale`: rank 0 writes it, at the run's end, into the file that
/// HORTATOR_MEASURE names.
struct Measure {
  std::string identity = "";  ///< of Hortator, LibTorch and MPI: what all points must have alike
  int ranks = 1;
  int nodes = 1;
  int cpus = 1;                     ///< that each rank may use
  std::int64_t updates = 0;         ///< backward passes that averaged gradients
  double seconds_per_update = 0;    ///< without the first few
  double seconds = 0;               ///< of the whole run, start and end included
  double cpu_seconds = 0;           ///< that rank 0 has used
  double communicating = 0;         ///< of these, keeping the ranks together: rank 0's
  double waiting_for_data = 0;      ///< rank 0's
  std::int64_t gradient_bytes = 0;  ///< that are averaged in an update
  std::string device = "";          ///< rank 0's; empty: the CPU
  double flops_per_update = 0;      ///< rank 0's, counted in one update; 0: there were too few
};

std::string to_json(const Measure& measure);
/// Nothing for what is none.
std::optional<Measure> parse_measure(const std::string& json);

}  // namespace hortator::observe

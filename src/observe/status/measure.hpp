#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hortator::observe {

/// Measurements of a run for `hortator scale`. Rank 0 writes them at the end of the run to the file that
/// HORTATOR_MEASURE names.
struct Measure {
  std::string identity = "";  ///< of Hortator, LibTorch and MPI; must be equal in all points of a study
  int ranks = 1;
  int nodes = 1;
  int cpus = 1;                     ///< available to each rank
  std::int64_t updates = 0;         ///< backward passes that averaged gradients
  double seconds_per_update = 0;    ///< without the first few updates
  double seconds = 0;               ///< of the whole run, with start and end
  double cpu_seconds = 0;           ///< used by rank 0
  double communicating = 0;         ///< seconds of `seconds` spent in communication, on rank 0
  double waiting_for_data = 0;      ///< seconds on rank 0
  std::int64_t gradient_bytes = 0;  ///< averaged in an update
  std::string device = "";          ///< of rank 0; empty: the CPU
  double joules = 0;                ///< of all nodes and devices, in the whole run; 0: not measured
  double flops_per_update = 0;      ///< of rank 0, counted in one update; 0: too few updates
};

std::string to_json(const Measure& measure);
/// Returns nothing for any other text.
std::optional<Measure> parse_measure(const std::string& json);

/// The peak rate of a device from its data sheet: floating-point operations per second of dense 16-bit products.
/// Nothing for unlisted devices.
std::optional<double> peak_flops(std::string_view device);

}  // namespace hortator::observe

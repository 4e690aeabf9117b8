#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/paired_timing.hpp"

namespace hortator::bench {

/// The result of one comparison.
struct Result {
  std::string name = "";                             ///< what was timed, unique among all verbs
  nlohmann::json params = nlohmann::json::object();  ///< parameters of the measurement
  std::string reference = "";                        ///< the name of the baseline
  PairedTiming timing = {};
  double copying_s = 0;    ///< of training steps: gradients into and out of buckets
  double reducing_s = 0;   ///< of training steps: reductions during backward, and buffers
  double waiting_s = 0;    ///< of training steps: wait for reductions after backward, on the rank that waits least
  double imbalance_s = 0;  ///< of training steps: additional wait of the rank that waits longest
  double algorithm_bytes_per_s = 0;  ///< of data movement: size of the buffer / time
  double bus_bytes_per_s = 0;        ///< bytes over the slowest link / time, comparable between numbers of ranks
  double samples_per_s = 0;          ///< of loaders: of all ranks together
};

/// {"name", "params", "reference", "reference_median_s", "reference_min_s", "median_s", "min_s", "ratio", "ratio_low",
/// "ratio_high", "runs"} and, of what moves data, "algorithm_gb_per_s" and "bus_gb_per_s", of training steps on several
/// ranks "copying_s", "reducing_s", "waiting_s" (medians over steps) and "imbalance_s" (the mean: stalls of one rank
/// are rare and long), of loaders "samples_per_s"; ratio = ours / reference in time, its median and where that lies
/// with 95 % confidence (of six runs or more).
std::string json_line(const Result& result);

/// The results as a table with a heading.
std::string table(const std::vector<Result>& results);

/// "312.4 us"
std::string time_text(double seconds);

}  // namespace hortator::bench

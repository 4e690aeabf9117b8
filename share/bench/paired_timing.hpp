#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <span>

/// Compares the time of two implementations. Blocks of both alternate, so that disturbances of the machine (turbo,
/// neighbours, thermal limits) affect both alike.
namespace hortator::bench {

struct Plan {
  int blocks = 21;                    ///< timed blocks of each side
  int steps = 50;                     ///< steps in a block
  std::filesystem::path folder = {};  ///< for files; the caller removes it
};

struct Timing {
  double median_s = 0;
  double min_s = 0;
};

struct Interval {
  double low = 0;
  double high = 0;
};

struct PairedTiming {
  Timing ours;
  Timing reference;
  double ratio = 0;           ///< ours / reference: the median over the pairs of neighbouring blocks
  Interval ratio_range = {};  ///< confidence interval of that median
  int runs = 0;               ///< pairs
};

double median(std::span<const double> values);
/// Mean difference high - low.
double mean_gap(std::span<const double> low, std::span<const double> high);
constexpr int min_for_range = 6;
/// The 95 % confidence interval of the median, for any distribution; needs at least six values.
Interval median_range(std::span<const double> values);

/// Summarises seconds per step of each block; entries of the same index were neighbouring blocks.
PairedTiming summarize(std::span<const double> ours, std::span<const double> reference);

struct Sides {
  std::function<void()> ours;       ///< one step
  std::function<void()> reference;  ///< one step
  std::function<void()> line_up;    ///< called before each block: ranks and devices are synchronised; after it,
                                    ///< devices are waited for
};
using Seconds = std::function<double()>;
double seconds_now();

/// One warm-up block of each, then `plan.blocks` pairs; the order alternates.
PairedTiming time_in_pairs(const Sides& sides, const Plan& plan, const Seconds& now = seconds_now);

}  // namespace hortator::bench

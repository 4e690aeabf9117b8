#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <span>

/// Two ways of doing the same thing, timed side by side: blocks of both alternate, so that whatever else the machine
/// does (turbo, neighbours, thermal limits) meets both alike.
namespace hortator::tools::bench {

struct Plan {
  int blocks = 21;                    ///< timed, of each side
  int steps = 50;                     ///< in a block
  std::filesystem::path folder = {};  ///< for what is written; somebody else removes it at the end
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
  Interval ratio_range = {};  ///< of that median
  int runs = 0;               ///< pairs
};

double median(std::span<const double> values);
/// How far the second values lie above the first, on average.
double mean_gap(std::span<const double> low, std::span<const double> high);
constexpr int min_for_range = 6;
/// In which the median lies with 95 % confidence, however the values scatter; of fewer than six no range says that.
Interval median_range(std::span<const double> values);

/// From the seconds a step of each block; entries of the same index were neighbours.
PairedTiming summarize(std::span<const double> ours, std::span<const double> reference);

struct Sides {
  std::function<void()> ours;       ///< one step
  std::function<void()> reference;  ///< one step
  std::function<void()> line_up;    ///< before each block: the ranks wait for each other, devices are idle; after it,
                                    ///< devices are waited for
};
using Seconds = std::function<double()>;
double seconds_now();

/// One block of each to warm up, then `plan.blocks` pairs; who goes first changes with each pair.
PairedTiming time_in_pairs(const Sides& sides, const Plan& plan, const Seconds& now = seconds_now);

}  // namespace hortator::tools::bench

#include "bench/paired_timing.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

namespace hortator::bench {
namespace {

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> all(values.begin(), values.end());
  std::sort(all.begin(), all.end());
  return all;
}

Timing timing(std::span<const double> seconds) {
  return {.median_s = median(seconds), .min_s = *std::min_element(seconds.begin(), seconds.end())};
}

}  // namespace

double median(std::span<const double> values) {
  const auto all = sorted(values);
  const auto half = all.size() / 2;
  return all.size() % 2 == 1 ? all[half] : (all[half - 1] + all[half]) / 2;
}

double mean_gap(std::span<const double> low, std::span<const double> high) {
  const auto gaps = std::transform_reduce(high.begin(), high.end(), low.begin(), 0.0, std::plus<>(), std::minus<>());
  return gaps / static_cast<double>(high.size());
}

// The number of values below the median is binomial: n / 2 +- 0.98 sqrt(n) with 95 % confidence.
Interval median_range(std::span<const double> values) {
  const auto all = sorted(values);
  const auto n = static_cast<double>(all.size());
  const auto outside = static_cast<std::size_t>(std::max(0.0, (n + 1) / 2 - 0.98 * std::sqrt(n) - 1));
  return {.low = all[outside], .high = all[all.size() - 1 - outside]};
}

PairedTiming summarize(std::span<const double> ours, std::span<const double> reference) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < ours.size(); ++i) ratios.push_back(ours[i] / reference[i]);
  return {.ours = timing(ours),
          .reference = timing(reference),
          .ratio = median(ratios),
          .ratio_range = median_range(ratios),
          .runs = static_cast<int>(ours.size())};
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

PairedTiming time_in_pairs(const Sides& sides, const Plan& plan, const Seconds& now) {
  const auto block = [&](const std::function<void()>& step) {
    sides.line_up();
    const double begin = now();
    for (int i = 0; i < plan.steps; ++i) step();
    sides.line_up();
    return (now() - begin) / plan.steps;
  };
  block(sides.reference);
  block(sides.ours);
  std::vector<double> ours;
  std::vector<double> reference;
  for (int pair = 0; pair < plan.blocks; ++pair) {
    const bool ours_first = pair % 2 == 0;
    if (ours_first) ours.push_back(block(sides.ours));
    reference.push_back(block(sides.reference));
    if (!ours_first) ours.push_back(block(sides.ours));
  }
  return summarize(ours, reference);
}

}  // namespace hortator::bench

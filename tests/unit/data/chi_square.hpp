#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace hortator::data_test {

/// How far counts are from what was expected, in standard deviations of chance. Far below zero: too even to be random.
/// `fixed`: sums of counts that are given beforehand.
inline double surprise(const std::vector<double>& counts, const std::vector<double>& expected, double fixed = 1) {
  double chi_square = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    chi_square += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  const double freedom = static_cast<double>(counts.size()) - fixed;
  // Wilson and Hilferty's normal approximation.
  const double width = 2 / (9 * freedom);
  return (std::cbrt(chi_square / freedom) - (1 - width)) / std::sqrt(width);
}

/// All equally likely.
inline double surprise(const std::vector<double>& counts, double fixed = 1) {
  double sum = 0;
  for (const double count : counts) sum += count;
  return surprise(counts, std::vector<double>(counts.size(), sum / static_cast<double>(counts.size())), fixed);
}

/// Seeds are fixed: what is within it once is so always.
inline bool is_by_chance(double surprise) { return std::abs(surprise) < 4; }

}  // namespace hortator::data_test

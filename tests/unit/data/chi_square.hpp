#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace hortator::data_test {

/// The distance of counts from their expectation, in standard deviations. Far below zero: too even to be random.
/// `fixed`: the number of sums of counts that are fixed.
inline double surprise(const std::vector<double>& counts, const std::vector<double>& expected, double fixed = 1) {
  double chi_square = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    chi_square += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  const double freedom = static_cast<double>(counts.size()) - fixed;
  // Wilson and Hilferty's normal approximation.
  const double width = 2 / (9 * freedom);
  return (std::cbrt(chi_square / freedom) - (1 - width)) / std::sqrt(width);
}

/// For equally likely outcomes.
inline double surprise(const std::vector<double>& counts, double fixed = 1) {
  double sum = 0;
  for (const double count : counts) sum += count;
  return surprise(counts, std::vector<double>(counts.size(), sum / static_cast<double>(counts.size())), fixed);
}

/// Seeds are fixed, so results are reproducible.
inline bool is_by_chance(double surprise) { return std::abs(surprise) < 4; }

}  // namespace hortator::data_test

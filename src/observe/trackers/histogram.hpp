#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace hortator::observe {

/// Counts of numbers between limits: counts[i] numbers are above limits[i - 1] and at most limits[i].
struct Histogram {
  double min = 0;
  double max = 0;
  std::int64_t count = 0;
  double sum = 0;
  double sum_of_squares = 0;
  std::vector<double> limits = {};
  std::vector<double> counts = {};
};

/// 30 bins of equal width from the smallest to the largest number; one bin if all are equal. Numbers that are not
/// finite are skipped.
Histogram histogram_of(const at::Tensor& numbers);

}  // namespace hortator::observe

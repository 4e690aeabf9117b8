#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace hortator::observe {

/// How many numbers lie between two limits: counts[i] of them above limits[i - 1] and up to limits[i].
struct Histogram {
  double min = 0;
  double max = 0;
  std::int64_t count = 0;
  double sum = 0;
  double sum_of_squares = 0;
  std::vector<double> limits = {};
  std::vector<double> counts = {};
};

/// In 30 parts of equal width from the least to the greatest number; one where they are all the same. Numbers that are
/// not finite are left out.
Histogram histogram_of(const at::Tensor& numbers);

}  // namespace hortator::observe

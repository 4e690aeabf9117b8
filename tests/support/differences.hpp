#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace hortator::test {

/// The larger of two differences. NaN counts as larger than any, while std::max(a, NaN) is a.
inline double larger(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::infinity() : std::max(a, b);
}

}  // namespace hortator::test

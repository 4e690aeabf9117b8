#pragma once

#include <string>
#include <vector>

namespace hortator::tools {

enum class Scale { linear, logarithmic };

/// What an axis shows.
struct Axis {
  double least = 0;
  double greatest = 1;
  Scale scale = Scale::linear;
  std::vector<double> ticks = {};  ///< within it

  /// From 0 at the least to 1 at the greatest.
  double place_of(double value) const;
};

/// An axis that holds all of `values` that are finite (and above 0 where it is logarithmic), with about `wanted` ticks
/// at round numbers: 1, 2 or 5 times a power of ten; on a logarithmic axis of numbers of ranks, powers of two.
Axis axis_of(const std::vector<double>& values, Scale scale, int wanted);

/// Of its ticks: "12k", "0.05", "1.5M": as short as tells neighbours apart.
std::vector<std::string> labels_of(const Axis& axis);

}  // namespace hortator::tools

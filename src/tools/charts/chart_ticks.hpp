#pragma once

#include <string>
#include <vector>

namespace hortator::tools {

enum class Scale { linear, logarithmic };

/// The range of an axis and its ticks.
struct Axis {
  double min = 0;
  double max = 1;
  Scale scale = Scale::linear;
  std::vector<double> ticks = {};  ///< within the range

  /// Position along the axis: 0 at min, 1 at max.
  double fraction_of(double value) const;
};

/// An axis that covers all finite `values` (above 0 if logarithmic), with about `wanted` ticks at round numbers: 1, 2
/// or 5 times a power of ten; on a logarithmic axis powers of two if the range is small (numbers of ranks), else of
/// ten.
Axis axis_of(const std::vector<double>& values, Scale scale, int wanted);

/// Labels of the ticks, such as "12k", "0.05", "1.5M": the shortest that differ from each other.
std::vector<std::string> labels_of(const Axis& axis);

}  // namespace hortator::tools

#pragma once

#include <string>
#include <vector>

namespace hortator::core {

/// Plots the values as one character each, scaled between minimum and maximum; empty for fewer than two values.
std::string sparkline(const std::vector<double>& values, bool utf8);

}  // namespace hortator::core

#pragma once

#include <string>
#include <vector>

namespace hortator::core {

/// A value's course as a character each, between the least and the greatest; empty for fewer than two.
std::string sparkline(const std::vector<double>& values, bool utf8);

}  // namespace hortator::core

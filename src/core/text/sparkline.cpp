#include "core/text/sparkline.hpp"

#include <algorithm>
#include <array>

namespace hortator::core {

std::string sparkline(const std::vector<double>& values, bool utf8) {
  static constexpr std::array<const char*, 8> blocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array<const char*, 8> marks = {"_", ".", "-", "~", "=", "+", "*", "#"};
  if (values.size() < 2) return "";
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  const double span = *max - *min;
  std::string line;
  for (const double value : values) {
    const double height = span > 0 ? (value - *min) / span : 0.5;
    const auto level = std::min<std::size_t>(static_cast<std::size_t>(height * 8), 7);
    line += utf8 ? blocks[level] : marks[level];
  }
  return line;
}

}  // namespace hortator::core

#include "observe/status/progress_text.hpp"

#include <cmath>

#include "core/text/text.hpp"

namespace hortator::observe {

std::string value_text(double value) {
  const bool is_whole = std::abs(value) < 1e9 && value == std::floor(value);
  return text::print(is_whole ? "%.0f" : "%.4g", value);
}

std::string rate_text(double per_second) {
  if (per_second >= 100) return text::print("%.0f/s", per_second);
  if (per_second >= 1 || per_second <= 0) return text::print("%.3g/s", per_second);
  return text::print("%.3g s each", 1 / per_second);
}

std::string bar(double share, int width) {
  const int full = static_cast<int>(share * width);
  std::string cells = "[";
  for (int i = 0; i < width; ++i) cells += i < full ? '=' : i == full ? '>' : ' ';
  return cells + ']';
}

}  // namespace hortator::observe

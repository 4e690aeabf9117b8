#include "observe/trackers/histogram.hpp"

#include <algorithm>
#include <cmath>

namespace hortator::observe {

Histogram histogram_of(const at::Tensor& numbers) {
  constexpr std::size_t bins = 30;
  const auto flat = numbers.detach().to(at::kCPU, at::kDouble).contiguous();
  const auto* begin = flat.const_data_ptr<double>();
  std::vector<double> finite;
  std::copy_if(begin, begin + flat.numel(), std::back_inserter(finite),
               [](double number) { return std::isfinite(number); });
  Histogram result;
  if (finite.empty()) return result;

  const auto [min, max] = std::minmax_element(finite.begin(), finite.end());
  result.min = *min;
  result.max = *max;
  result.count = static_cast<std::int64_t>(finite.size());
  const double width = (result.max - result.min) / bins;
  if (!(width > 0)) {
    result.limits = {result.max};
  } else {
    for (std::size_t i = 1; i < bins; ++i) result.limits.push_back(result.min + width * static_cast<double>(i));
    result.limits.push_back(result.max);
  }
  result.counts.resize(result.limits.size());
  for (const double number : finite) {
    result.sum += number;
    result.sum_of_squares += number * number;
    const auto bin = std::lower_bound(result.limits.begin(), result.limits.end(), number) - result.limits.begin();
    ++result.counts[std::min(static_cast<std::size_t>(bin), result.counts.size() - 1)];
  }
  return result;
}

}  // namespace hortator::observe

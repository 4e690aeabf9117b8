#include "accelerator/stopping/save_pace.hpp"

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>

namespace hortator::accelerator {

std::chrono::seconds best_interval(SavePace::Clock::duration cost, std::chrono::seconds between_failures) {
  if (between_failures.count() <= 0) {
    throw UsageError({.what = "The mean time between failures is not positive",
                      .hint = "pass the site's experience with jobs of this size, for example 24h"});
  }
  const std::chrono::duration<double> each = cost;
  return std::chrono::seconds(
      std::llround(std::sqrt(2 * each.count() * static_cast<double>(between_failures.count()))));
}

std::optional<SavePace::Clock::duration> time_to_save(const SaveTimes& times) {
  if (!times.under_way) return times.longest;
  const auto each = std::max(times.longest.value_or(SavePace::Clock::duration::zero()), *times.under_way);
  return each - *times.under_way + each;
}

bool save_fits(const SaveTimes& times, std::chrono::milliseconds left) {
  constexpr auto worth_a_try = std::chrono::seconds(5);
  if (times.longest) return *time_to_save(times) * 3 / 2 <= left;
  return !times.under_way && left >= worth_a_try;
}

}  // namespace hortator::accelerator

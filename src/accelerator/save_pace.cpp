#include "accelerator/save_pace.hpp"

#include <cmath>
#include <hortator/error.hpp>

namespace hortator::accelerator {

std::chrono::seconds best_interval(SavePace::Clock::duration cost, std::chrono::seconds between_failures) {
  if (between_failures.count() <= 0) {
    throw UsageError({.what = "the mean time between failures is not positive",
                      .hint = "give what the site has seen for jobs of this size, 24h say"});
  }
  const std::chrono::duration<double> each = cost;
  return std::chrono::seconds(
      std::llround(std::sqrt(2 * each.count() * static_cast<double>(between_failures.count()))));
}

bool save_fits(std::optional<SavePace::Clock::duration> cost, std::chrono::milliseconds left) {
  constexpr auto worth_a_try = std::chrono::seconds(10);
  return cost ? *cost * 3 / 2 <= left : left >= worth_a_try;
}

}  // namespace hortator::accelerator

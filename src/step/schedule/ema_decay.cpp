#include <algorithm>
#include <cmath>
#include <hortator/training/ema.hpp>

namespace hortator {

double ema_decay(const EmaOptions& options, std::int64_t update) {
  const auto n = static_cast<double>(update - options.update_after_step - 1);
  if (n <= 0) return 0;
  if (options.warm_up == EmaWarmUp::none) return options.decay;
  const double grown = options.warm_up == EmaWarmUp::ratio ? (1 + n) / (10 + n)
                                                           : 1 - std::pow(1 + n / options.inv_gamma, -options.power);
  return std::max(std::min(grown, options.decay), options.min_decay);
}

}  // namespace hortator

#include "step/precision/loss_scale.hpp"

#include <cmath>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::step {
namespace {

void require(bool fits, const char* name, double value, const char* hint) {
  if (fits) return;
  throw UsageError({.what = text::concat("grad_scaler.", name, " is ", value),
                    .why = "the loss scale must stay above zero, fall on overflow and rise otherwise",
                    .hint = hint});
}

}  // namespace

void check(const GradScalerOptions& options) {
  const auto init = static_cast<float>(options.init_scale);
  require(std::isfinite(init) && init > 0, "init_scale", options.init_scale, "use a number above 0, within fp32");
  require(options.growth_factor > 1, "growth_factor", options.growth_factor, "use a number above 1");
  require(options.backoff_factor > 0 && options.backoff_factor < 1, "backoff_factor", options.backoff_factor,
          "use a number between 0 and 1");
  require(options.growth_interval >= 1, "growth_interval", static_cast<double>(options.growth_interval),
          "use a number of steps, at least 1");
}

// The scale is a float and the factors are doubles, so each product is rounded once.
LossScale next_scale(LossScale scale, bool overflowed, const GradScalerOptions& options) {
  if (overflowed) return {.scale = static_cast<float>(scale.scale * options.backoff_factor), .growth_tracker = 0};
  if (scale.growth_tracker + 1 != options.growth_interval) {
    return {.scale = scale.scale, .growth_tracker = scale.growth_tracker + 1};
  }
  const auto grown = static_cast<float>(scale.scale * options.growth_factor);
  return {.scale = std::isfinite(grown) ? grown : scale.scale, .growth_tracker = 0};
}

}  // namespace hortator::step

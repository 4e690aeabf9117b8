#pragma once

#include <cstdint>

namespace hortator {

/// With Precision::fp16 losses are multiplied by a scale, so that small gradients do not vanish, and gradients are
/// divided by it before they are used. Where some are not finite on any rank, all ranks skip the step and the scale
/// falls; after growth_interval steps without that it rises. The reference's GradScalerKwargs.
struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
  bool enabled = true;  ///< off: losses are not scaled and no step is skipped
};

/// Where the scaler stands.
struct LossScale {
  float scale = 1;
  std::int64_t growth_tracker = 0;  ///< steps without overflow since the scale has changed

  bool operator==(const LossScale&) const = default;
};

}  // namespace hortator

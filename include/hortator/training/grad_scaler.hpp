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
  /// The host does not wait for each step's verdict (4 bytes from the device): the device skips the step by itself, and
  /// the host hears of it with the optimizer's next step. Parameters, moments and the scale are those of a run without
  /// it, to the last bit, as long as the learning rate is. What is told is one step behind: step_was_skipped() after
  /// step n speaks of step n - 1 (of the first: false), loss_scale() is as of then, and a schedule rests in the call
  /// after a skipped step instead of the one with it. save_state(), free_memory() and end_training() wait for the last
  /// verdict; before, the step count that an optimizer keeps may be one ahead. For AdamW, Adam and SGD with
  /// AcceleratorOptions::fused_optimizer; others throw. The same on all ranks.
  bool late_verdict = false;
};

/// Where the scaler stands.
struct LossScale {
  float scale = 1;
  std::int64_t growth_tracker = 0;  ///< steps without overflow since the scale has changed

  bool operator==(const LossScale&) const = default;
};

}  // namespace hortator

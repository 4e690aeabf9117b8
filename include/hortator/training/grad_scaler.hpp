#pragma once

#include <cstdint>

namespace hortator {

/// With Precision::fp16, losses are multiplied by a scale, so that small gradients do not vanish, and gradients are
/// divided by it before they are used. If some gradient is not finite on any rank, all ranks skip the step and the
/// scale falls. After growth_interval steps without overflow it rises. Accelerate's GradScalerKwargs.
struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
  bool enabled = true;  ///< off: losses are not scaled and no step is skipped
  /// The host does not wait for each step's verdict (4 bytes from the device). The device skips the step, and the host
  /// reads the verdict at the optimizer's next step. Parameters, moments and the scale are bitwise those of a run
  /// without this option, as long as the learning rate is. Reported values lag by one step: step_was_skipped() after
  /// step n reports step n - 1 (false after the first), loss_scale() is that of step n - 1, and a schedule does not
  /// advance in the call after a skipped step instead of the call with it. save_state(), free_memory() and
  /// end_training() wait for the last verdict; before, the step count in an optimizer's state may be one too high. For
  /// AdamW, Adam and SGD with AcceleratorOptions::fused_optimizer; others throw. Must be equal on all ranks.
  bool late_verdict = false;
};

/// The state of the scaler.
struct LossScale {
  float scale = 1;
  std::int64_t growth_tracker = 0;  ///< steps without overflow since the last change of the scale

  bool operator==(const LossScale&) const = default;
};

}  // namespace hortator

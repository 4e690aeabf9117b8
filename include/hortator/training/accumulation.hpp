#pragma once

namespace hortator {

/// Options of gradient accumulation; Accelerate's GradientAccumulationPlugin.
struct GradientAccumulationOptions {
  bool sync_with_dataloader = true;  ///< the last batch of a pass ends its group, whatever its number of micro-steps
  bool sync_each_batch = false;      ///< averages gradients at each micro-step: more communication, less memory
};

}  // namespace hortator

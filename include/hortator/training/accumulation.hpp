#pragma once

namespace hortator {

/// Options of gradient accumulation; Accelerate's GradientAccumulationPlugin.
struct GradientAccumulationOptions {
  bool sync_with_dataloader = true;  ///< the last batch of a pass ends its group, whatever its number of micro-steps
  bool sync_each_batch = false;      ///< averages gradients at each micro-step: more communication, less memory
};

/// Options of Accelerator::backward().
struct BackwardOptions {
  /// Keeps what the graph has saved, so that another backward pass can go through it.
  bool retain_graph = false;
};

}  // namespace hortator

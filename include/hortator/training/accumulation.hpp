#pragma once

namespace hortator {

/// When a group of micro-steps ends early, and what travels meanwhile; the reference's GradientAccumulationPlugin.
struct GradientAccumulationOptions {
  bool sync_with_dataloader = true;  ///< the last batch of a pass ends its group, however many micro-steps it has
  bool sync_each_batch = false;      ///< gradients are averaged at each micro-step: more traffic, less memory
};

}  // namespace hortator

#pragma once

#include <vector>

#include "accelerator/prepared/prepared.hpp"
#include "step/gradients/reach_marks.hpp"

/// Gradients of updates that were left out under protection. Until they are cleared they must not spoil the updates of
/// other optimizers.
namespace hortator::accelerator {

/// Whether gradients of some optimizer are not finite, or were not before they were clamped. Optimizers that hold
/// refused ones do not count. Waits for the device.
bool any_new_nonfinite(const Prepared& prepared);

/// Detects which optimizers get gradients in a backward pass after they left an update out.
class RefusedGradients {
 public:
  /// Call it before the pass. Costs nothing while no optimizer holds refused gradients.
  explicit RefusedGradients(const Prepared& prepared);
  /// Call it after the pass: optimizers of the models that it has reached hold new gradients.
  void renew() const;

 private:
  const Prepared& prepared_;
  std::vector<step::ReachMarks> marks_;
};

}  // namespace hortator::accelerator

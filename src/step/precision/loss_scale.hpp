#pragma once

#include <hortator/training/grad_scaler.hpp>

namespace hortator::step {

/// Throws UsageError for options out of range.
void check(const GradScalerOptions& options);

/// The scale after a step, bitwise equal to that of torch's GradScaler. A scale does not grow to infinity.
LossScale next_scale(LossScale scale, bool overflowed, const GradScalerOptions& options);

}  // namespace hortator::step

#pragma once

#include <hortator/training/grad_scaler.hpp>

namespace hortator::step {

/// Throws unless the options have a meaning.
void check(const GradScalerOptions& options);

/// The scale after a step: bit for bit that of torch's GradScaler. A scale that would not be finite does not grow.
LossScale next_scale(LossScale scale, bool overflowed, const GradScalerOptions& options);

}  // namespace hortator::step

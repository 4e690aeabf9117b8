#pragma once

#include <torch/optim/sgd.h>

#include "step/optimizer/fused_step.hpp"

namespace hortator::step {

/// The fused step of an optimizer of exactly this type, not of a subclass; see fused_step().
bool fused_sgd(torch::optim::SGD& optimizer, const StepMode& mode);

}  // namespace hortator::step

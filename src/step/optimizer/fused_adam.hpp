#pragma once

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

#include "step/optimizer/fused_step.hpp"

namespace hortator::step {

/// The fused step of an optimizer of exactly this type, not of a subclass; see fused_step().
bool fused_adam(torch::optim::Adam& optimizer, const StepMode& mode);
bool fused_adam(torch::optim::AdamW& optimizer, const StepMode& mode);

}  // namespace hortator::step

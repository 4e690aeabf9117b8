#pragma once

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

#include "step/optimizer/fused_step.hpp"

namespace hortator::step {

/// The fused step of one optimizer of exactly this type; see fused_step().
bool fused_adam(torch::optim::Adam& optimizer, const StepManner& manner);
bool fused_adam(torch::optim::AdamW& optimizer, const StepManner& manner);

}  // namespace hortator::step

#pragma once

#include <torch/optim/sgd.h>

#include "step/optimizer/fused_step.hpp"

namespace hortator::step {

/// The fused step of one optimizer of exactly this type; see fused_step().
bool fused_sgd(torch::optim::SGD& optimizer, const StepManner& manner);

}  // namespace hortator::step

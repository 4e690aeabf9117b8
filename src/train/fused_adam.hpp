#pragma once

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

namespace hortator::train {

/// The fused step of one optimizer of exactly this type; see fused_step().
bool fused_adam(torch::optim::Adam& optimizer);
bool fused_adam(torch::optim::AdamW& optimizer);

}  // namespace hortator::train

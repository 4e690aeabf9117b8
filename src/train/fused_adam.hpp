#pragma once

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

namespace hortator::train {

class StepRecording;

/// The fused step of one optimizer of exactly this type; see fused_step().
bool fused_adam(torch::optim::Adam& optimizer, StepRecording* recording);
bool fused_adam(torch::optim::AdamW& optimizer, StepRecording* recording);

}  // namespace hortator::train

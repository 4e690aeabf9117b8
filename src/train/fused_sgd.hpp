#pragma once

#include <torch/optim/sgd.h>

namespace hortator::train {

class StepRecording;

/// The fused step of one optimizer of exactly this type; see fused_step().
bool fused_sgd(torch::optim::SGD& optimizer, StepRecording* recording);

}  // namespace hortator::train

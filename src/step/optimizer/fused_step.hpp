#pragma once

#include <torch/optim/optimizer.h>

namespace hortator::step {

class StepAhead;
class StepRecording;

enum class StepKernel { fused, own };

/// How a step is made; by default at once, for good.
struct StepManner {
  StepRecording* recording = nullptr;  ///< the kernels are not run but recorded, see fused_step
  StepAhead* ahead = nullptr;          ///< it may prove to be skipped
};

/// One step of `optimizer` by one of ATen's multi-tensor kernels. False, and nothing is changed, where its own step()
/// is to be taken: for other types than torch::optim's AdamW, Adam and SGD (a subclass may do anything), for amsgrad,
/// and for parameters and gradients that the kernels would misread (sparse, complex, of unlike types, devices or
/// strides). What it remembers lies where its own step() keeps it, so that the two can alternate.
///
/// With a `recording` the kernel is not run but recorded: it reads learning rates and step counts on the device, and
/// the optimizer counts a step at each replay. It must have stepped all its parameters before.
bool fused_step(torch::optim::Optimizer& optimizer, const StepManner& manner = {});

/// By the kernel asked for, as far as it goes.
void step(torch::optim::Optimizer& optimizer, StepKernel kernel);

}  // namespace hortator::step

#pragma once

#include <torch/optim/optimizer.h>

namespace hortator::step {

class StepAhead;
class StepRecording;

/// ATen's fused kernel, or the optimizer's own step().
enum class StepKernel { fused, own };

/// How a step is run. By default it runs now and is final.
struct StepMode {
  StepRecording* recording = nullptr;  ///< set: kernels are recorded, not run; see fused_step()
  StepAhead* ahead = nullptr;          ///< set: the step is skipped on the device if its verdict is an overflow
};

/// Runs one step of `optimizer` by one of ATen's multi-tensor kernels. Returns false, and changes nothing, if the
/// optimizer's own step() must be used: for types other than torch::optim's AdamW, Adam and SGD (a subclass may do
/// anything), for amsgrad, and for parameters and gradients that the kernels would misread (sparse, complex, or with
/// different types, devices or strides). The state is stored as by the optimizer's own step(), so both can alternate.
///
/// With a `recording` the kernel is recorded, not run: it reads learning rates and step counts on the device, and the
/// optimizer counts a step at each replay. The optimizer must have stepped all its parameters before.
bool fused_step(torch::optim::Optimizer& optimizer, const StepMode& mode = {});

/// One step by `kernel`; by the optimizer's own step() where the fused kernel does not apply.
void step(torch::optim::Optimizer& optimizer, StepKernel kernel);

}  // namespace hortator::step

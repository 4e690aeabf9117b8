#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "step/capture/step_recording.hpp"

namespace hortator::step {

/// The gradients of a step that is recorded. Recorded kernels read and write those that were there before, at their
/// addresses, whatever the program does with them in the meantime.
class RecordedGradients {
 public:
  /// Before the recording.
  explicit RecordedGradients(const std::vector<at::Tensor>& parameters);

  /// After it: the recording is valid as long as each gradient that it adds to has its memory, and gradients that it
  /// makes are there again after each replay.
  void complete(StepRecording& recording) const;
  /// Instead, when it has failed.
  void put_back() const;

 private:
  struct RecordedGradient {
    at::Tensor parameter;
    at::Tensor before;
  };
  std::vector<RecordedGradient> gradients_;
};

}  // namespace hortator::step

#include "train/step_recording.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>

namespace hortator::train {

// Filled by no operator here: that would be recorded, and would put the old number back each time.
at::Tensor StepRecording::number(c10::Device device, std::function<double()> value) {
  const auto number = at::empty({}, at::TensorOptions(device).dtype(at::kFloat));
  before_replay([number, value = std::move(value)] {
    const at::NoGradGuard no_grad;
    number.fill_(value());
  });
  return number;
}

bool StepRecording::is_good() const {
  return std::all_of(conditions_.begin(), conditions_.end(), [](const auto& holds) { return holds(); });
}

void StepRecording::begin_replay() const {
  for (const auto& act : before_) act();
}

void StepRecording::end_replay() const {
  for (const auto& act : after_) act();
}

}  // namespace hortator::train

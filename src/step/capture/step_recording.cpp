#include "step/capture/step_recording.hpp"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::step {

StepRecording::StepRecording(c10::Device device)
    : numbers_(at::zeros({max_numbers}, at::TensorOptions(device).dtype(at::kFloat))) {}

// Do not fill the number by an operator here: it would be recorded, and each replay would restore the old number.
at::Tensor StepRecording::number(c10::Device device, std::function<double()> value) {
  if (device != numbers_.device() || used_numbers_ == max_numbers) {
    throw Error({.what = device != numbers_.device()
                             ? text::concat("A step that is recorded on ", numbers_.device().str(),
                                            " updates parameters on ", device.str())
                             : text::concat("A step that is recorded needs more than ", max_numbers,
                                            " numbers from the host, such as learning rates"),
                 .why = "the host writes them to memory that was set aside before the recording",
                 .hint = "use one device and fewer parameter groups, or do not capture the step"});
  }
  auto number = numbers_.select(0, used_numbers_++);
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

}  // namespace hortator::step

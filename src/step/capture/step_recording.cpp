#include "step/capture/step_recording.hpp"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>

namespace hortator::step {
namespace {

/// With deterministic algorithms LibTorch fills new memory with NaN; not to the end of this scope.
class NoFilling {
 public:
  NoFilling() { at::globalContext().setDeterministicFillUninitializedMemory(false); }
  ~NoFilling() { at::globalContext().setDeterministicFillUninitializedMemory(before_); }
  NoFilling(const NoFilling&) = delete;
  NoFilling& operator=(const NoFilling&) = delete;

 private:
  bool before_ = at::globalContext().deterministicFillUninitializedMemory();
};

at::Tensor unfilled_number(c10::Device device) {
  const NoFilling here;
  return at::empty({}, at::TensorOptions(device).dtype(at::kFloat));
}

}  // namespace

// Filled by no operator here: that would be recorded, and would put the old number back each time.
at::Tensor StepRecording::number(c10::Device device, std::function<double()> value) {
  auto number = unfilled_number(device);
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
